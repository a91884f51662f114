// Builds the JavaScript of the packages: ESM and, if a package offers it, CommonJS.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { entriesOf, offersCommonJs, packages } from './packages.mjs'

/** ESM-only dependencies, which are bundled into the CommonJS files. */
const modulesOnly = ['canonicalize']

/** Marks the modules that run in the browser, for React Server Components. */
const banners = { react: { js: "'use client'" } }

/** Builds one package into its `dist`, or into `outdir`. declarations.mjs writes the declarations, for all packages at once. */
export async function buildPackage(one, outdir = join(one.folder, 'dist')) {
  const { dependencies = {}, peerDependencies = {} } = one.manifest
  const external = [...Object.keys(dependencies), ...Object.keys(peerDependencies)]
  const options = {
    absWorkingDir: one.folder,
    entryPoints: entriesOf(one),
    outdir,
    bundle: true,
    platform: 'node',
    target: 'es2022',
    banner: banners[one.name] ?? {},
    logLevel: 'warning',
  }
  removeScripts(outdir)
  await build({ ...options, format: 'esm', splitting: true, external })
  dropBareImports(outdir)
  if (!offersCommonJs(one)) return
  const imported = external.filter((name) => !modulesOnly.includes(name))
  await build({ ...options, format: 'cjs', outExtension: { '.js': '.cjs' }, external: imported })
}

/** A chunk that is imported for nothing makes bundlers warn: no module of a package has side effects. */
function dropBareImports(folder) {
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.js'))) {
    const text = readFileSync(join(folder, file), 'utf8')
    writeFileSync(join(folder, file), text.replace(/^import "\.\/chunk-\w+\.js";\n/gm, ''))
  }
}

/** Imported by a package only if installed. */
const optional = ['@photostructure/sqlite', '@opentelemetry/api']

/** Chunks of an earlier build have other names. Declarations stay: declarations.mjs writes them. */
function removeScripts(folder) {
  if (!existsSync(folder)) return
  for (const file of readdirSync(folder)) if (/\.c?js$/.test(file)) rmSync(join(folder, file))
}

export async function buildPackages() {
  await Promise.all(packages.map((one) => buildPackage(one)))
}

/** Builds an example program for Node into its `dist`, with the built packages of this repository bundled in. */
export async function buildProgram(folder) {
  const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const external = Object.keys(dependencies).filter((name) => !name.startsWith('@countersign/'))
  await build({
    absWorkingDir: folder,
    entryPoints: ['src/main.ts'],
    outfile: 'dist/main.js',
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    external: [...external, ...optional],
    // the page's sources are shared and are not built separately
    alias: { '@countersign/example-page': join(folder, '../page/src') },
    logLevel: 'warning',
  })
}
