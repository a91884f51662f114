import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { packages } from '../scripts/packages.mjs'
import { full } from './full.js'

const root = join(import.meta.dirname, '..')
const project = mkdtempSync(join(tmpdir(), 'countersign-consumer-'))

interface Manifest {
  name: string
  version: string
  exports: Record<string, string | { import?: unknown; require?: unknown }>
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
}

function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
}

const folders = packages.map(({ folder }) => folder)
const manifests = folders.map(readManifest)
interface Entry {
  /** As a consumer names it: `@countersign/client`, `@countersign/client/state-patch`, ... */
  name: string
  /** Whether it can be required. Frameworks that are ES modules only have bindings that are. */
  commonJs: boolean
}

const entries: Entry[] = manifests.flatMap(({ name, exports }) =>
  Object.entries(exports).flatMap(([path, conditions]) =>
    typeof conditions === 'string' ? [] : [{ name: name + path.slice(1), commonJs: 'require' in conditions }],
  ),
)
const required = entries.filter(({ commonJs }) => commonJs)

const exec = promisify(execFile)

/** The packages as they would be published. */
const tarballs: string[] = []

async function run(command: string, args: string[], cwd = project): Promise<void> {
  try {
    await exec(command, args, { cwd, shell: process.platform === 'win32' && command === 'npm' })
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string }
    throw new Error(`${command} ${args.join(' ')} failed:\n${stdout ?? ''}${stderr ?? ''}`)
  }
}

/** The types that a consumer of a binding has installed beside its framework, as `name@version`. */
function frameworkTypes(): string[] {
  const installed = manifests.flatMap(({ devDependencies = {} }) => Object.entries(devDependencies))
  return installed.filter(([name]) => name.startsWith('@types/')).map((entry) => entry.join('@'))
}

beforeAll(async () => {
  const unbuilt = folders.filter((folder) => !existsSync(join(folder, 'dist')))
  if (unbuilt.length > 0) throw new Error(`Not built: ${unbuilt.join(', ')}. Run: pnpm run build`)
  const { packageManager } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const pnpm = ['exec', '--yes', `--package=${packageManager}`, '--', 'pnpm']
  await run(
    'npm',
    [
      ...pnpm,
      '-r',
      '--filter',
      './packages/*',
      '--filter',
      '!@countersign/registry',
      'pack',
      '--pack-destination',
      project,
    ],
    root,
  )
  tarballs.push(
    ...readdirSync(project)
      .filter((file) => file.endsWith('.tgz'))
      .map((file) => join(project, file)),
  )
  writeFileSync(join(project, 'package.json'), JSON.stringify({ private: true }))
  const quiet = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline', '--no-package-lock']
  await run('npm', ['install', ...quiet, ...tarballs, ...frameworkTypes()])
})

afterAll(() => rmSync(project, { recursive: true, force: true }))

test('the packed packages contain what was built, a license and a readme, and nothing else', () => {
  for (const { name } of manifests) {
    const files = readdirSync(join(project, 'node_modules', name)).filter((file) => file !== 'node_modules')
    const more = name === '@countersign/sql' ? ['schema'] : []
    expect([name, ...files.toSorted()]).toEqual([
      name,
      'LICENSE',
      'README.md',
      'dist',
      'package.json',
      ...more,
    ])
  }
})

test('no file imports a chunk for nothing, of which a bundler would warn', () => {
  const bare = manifests.flatMap(({ name }) => {
    const dist = join(project, 'node_modules', name, 'dist')
    const scripts = readdirSync(dist).filter((file) => file.endsWith('.js'))
    return scripts.filter((file) => /^import "/m.test(readFileSync(join(dist, file), 'utf8')))
  })
  expect(bare).toEqual([])
})

test('publint has nothing to say against the packed packages', async () => {
  const complaints = []
  for (const file of tarballs) {
    const { buffer, byteOffset, byteLength } = readFileSync(file)
    const tarball = buffer.slice(byteOffset, byteOffset + byteLength)
    const { messages, pkg } = await publint({ pack: { tarball }, strict: true })
    const serious = messages.filter(({ type }) => type !== 'suggestion')
    complaints.push(...serious.map((message) => `${pkg.name}: ${formatMessage(message, pkg)}`))
  }
  expect(tarballs).toHaveLength(manifests.length)
  expect(complaints).toEqual([])
})

test('the packed packages name one another by version', () => {
  for (const { name } of manifests) {
    const { dependencies = {} } = readManifest(join(project, 'node_modules', name))
    const siblings = Object.entries(dependencies).filter(([dependency]) =>
      dependency.startsWith('@countersign/'),
    )
    for (const [dependency, range] of siblings) {
      expect([dependency, range]).toEqual([
        dependency,
        manifests.find((other) => other.name === dependency)?.version,
      ])
    }
  }
})

/** With `nodenext` the types of every entry are resolved as ES modules and as CommonJS. */
const resolutions = [
  { moduleResolution: 'node16', module: 'node16', extensions: ['ts', 'mts', 'cts'] },
  { moduleResolution: 'nodenext', module: 'nodenext', extensions: ['ts', 'mts', 'cts'] },
  { moduleResolution: 'bundler', module: 'esnext', extensions: ['ts', 'mts'] },
]

for (const { moduleResolution, module, extensions } of full ? resolutions : []) {
  test.concurrent(`the packed packages type-check in a consumer with moduleResolution ${moduleResolution}`, async () => {
    const folder = join(project, moduleResolution)
    mkdirSync(folder)
    for (const extension of extensions) {
      // In a folder without `"type": "module"` Node takes a .ts file for CommonJS.
      const usable = module === 'esnext' || extension === 'mts' ? entries : required
      const lines = usable.map(({ name }, index) => `import * as entry${index} from '${name}'`)
      const uses = usable.map((_, index) => `entry${index}`)
      writeFileSync(
        join(folder, `consumer.${extension}`),
        `${lines.join('\n')}\nexport const all = [${uses}]\n`,
      )
    }
    const compilerOptions = {
      module,
      moduleResolution,
      target: 'es2022',
      lib: ['es2023', 'dom', 'dom.iterable', 'dom.asynciterable'],
      strict: true,
      noEmit: true,
      skipLibCheck: false,
      types: ['node'],
      typeRoots: [join(root, 'node_modules/@types')],
    }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*'] }))
    await run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder])
  })
}

test('every entry loads as an ES module, also in Node with packages resolved for browsers', async () => {
  const lines = entries.map(({ name }) => `await import('${name}')`)
  writeFileSync(join(project, 'load.mjs'), lines.join('\n'))
  await run(process.execPath, ['load.mjs'])
  // as Vite resolves packages in tests of Svelte and Solid
  await run(process.execPath, ['--conditions=browser', 'load.mjs'])
})

test('every entry that offers CommonJS loads by require', async () => {
  const lines = required.map(({ name }) => `require('${name}')`)
  writeFileSync(join(project, 'load.cjs'), lines.join('\n'))
  // so that an entry that offers only an ES module fails, as it does on a Node that cannot require one
  await run(process.execPath, ['--no-experimental-require-module', 'load.cjs'])
})
