// JavaScript of the packages: ESM and, where a package offers it, CommonJS.
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { entriesOf, offersCommonJs, packages } from './packages.mjs'

/** Dependencies that offer no CommonJS: the CommonJS files contain them. */
const modulesOnly = ['canonicalize']

/** React Server Components need to be told which modules run in the browser. */
const banners = { react: { js: "'use client'" } }

/** Builds one package into its `dist`, or into `outdir`. Types are made by types.mjs, for all packages at once. */
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
  if (!offersCommonJs(one)) return
  const imported = external.filter((name) => !modulesOnly.includes(name))
  await build({ ...options, format: 'cjs', outExtension: { '.js': '.cjs' }, external: imported })
}

/** What a package imports only where it is installed. */
const optional = ['@photostructure/sqlite']

/** Chunks of an earlier build have other names. Declarations stay: they are written by types.mjs. */
function removeScripts(folder) {
  if (!existsSync(folder)) return
  for (const file of readdirSync(folder)) if (/\.c?js$/.test(file)) rmSync(join(folder, file))
}

export async function buildPackages() {
  await Promise.all(packages.map((one) => buildPackage(one)))
}

/** Builds a program of `examples` for Node into its `dist`, with the packages of this repository as they were built inside. */
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
    // the page's sources are shared, and have no build of their own
    alias: { '@countersign/example-page': join(folder, '../page/src') },
    logLevel: 'warning',
    // the files that a package was split into import one another also where nothing of it is needed
    logOverride: { 'ignored-bare-import': 'silent' },
  })
}
