import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect, test } from 'vitest'
import { blocksOf } from '../docs/markdown.js'

const root = join(import.meta.dirname, '../..')
const apps = readdirSync(join(root, 'examples/apps'))
const read = (file: string) => readFileSync(join(root, file), 'utf8')

interface LockEntry {
  readonly version: string
  readonly integrity?: string
  readonly inBundle?: boolean
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

const manifestOf = (folder: string) => JSON.parse(read(`${folder}/package.json`))
const ours = new Map<string, LockEntry>(
  readdirSync(join(root, 'packages'))
    .map((name) => manifestOf(`packages/${name}`))
    .map((manifest) => [manifest.name, manifest]),
)

/** The files of an application, or those of one name: without what is installed, built or hidden. */
function filesOf(app: string, name?: string): readonly string[] {
  const folder = join('examples/apps', app)
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile() && (name === undefined || entry.name === name))
    .map((entry) => join(relative(root, entry.parentPath), entry.name))
    .filter((file) => !/\/(?:\.|(?:node_modules|dist|build|data)\/)/.test(file))
}

test('there is an application for each of six frameworks, and its page of the docs links to it', () => {
  expect(apps.toSorted()).toEqual(['express', 'next', 'nuxt', 'solidstart', 'sveltekit', 'workerd'])
  for (const app of apps) expect(read('docs/frameworks.md')).toContain(`(../examples/apps/${app}/README.md)`)
})

test.each(apps)(
  'the application %s pins what it installs, and is built, checked and started by its scripts',
  (app) => {
    const { dependencies, devDependencies, scripts, engines } = manifestOf(`examples/apps/${app}`)
    for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies }))
      expect([name, version]).toEqual([
        name,
        ours.get(name)?.version ?? expect.stringMatching(/^\d+\.\d+\.\d+$/),
      ])
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(['build', 'check', 'start']))
    expect(engines.node).toMatch(/^>=\d+\.\d+$/)
  },
)

test.each(apps)('the readme of %s starts it with three commands', (app) => {
  const [commands] = blocksOf(`examples/apps/${app}/README.md`)
  expect(commands?.code.trim().split('\n')).toEqual([
    'npm install',
    'npm run build',
    expect.stringMatching(/npm start$/),
  ])
})

/** The guide of the docs for each application. */
const guides: Record<string, string> = {
  express: 'docs/express.md',
  next: 'docs/nextjs.md',
  nuxt: 'docs/nuxt.md',
  solidstart: 'docs/solidstart.md',
  sveltekit: 'docs/sveltekit.md',
  workerd: 'docs/edge.md',
}

/** The files that the readme of an application lists. The model is the same in all of them, and only one guide shows it. */
function listedFiles(app: string): readonly string[] {
  const links = [...read(`examples/apps/${app}/README.md`).matchAll(/^\| \[`[^`]*`\]\((.*?)\) \|/gm)]
  return links
    .map(([, file]) => `examples/apps/${app}/${file}`)
    .filter((file) => app === 'next' || !file.endsWith('/model.ts'))
}

const shownFiles = (guide: string) =>
  blocksOf(guide).filter(({ file = '' }) => file.startsWith('examples/apps/'))

// RECORD_DOCS=1 writes the files into the guides.
test.each(apps)('the guide for %s shows the files of the application as they are', (app) => {
  const guide = guides[app] ?? ''
  const blocks = shownFiles(guide)
  expect(listedFiles(app).length).toBeGreaterThan(2)
  expect(blocks.map(({ file }) => file)).toEqual(expect.arrayContaining([...listedFiles(app)]))
  if (process.env.RECORD_DOCS === '1') {
    const renewed = blocks.reduce(
      (page, { file = '', code }) => page.replace(code, () => read(file)),
      read(guide),
    )
    writeFileSync(join(root, guide), renewed)
  }
  for (const { file = '', code } of shownFiles(guide))
    expect(code, `${guide} shows ${file} as it was: run this test with RECORD_DOCS=1`).toBe(read(file))
})

/** What the command that creates a new project writes, and what belongs to this repository. */
const inNewProject =
  /^(?:package(?:-lock)?\.json|(?:\w+\/)?tsconfig\.json|README\.md|app\/layout\.tsx|src\/(?:app\.html|app\.tsx|entry-\w+\.tsx)|(?:vite|svelte)\.config\.\w+)$/

test.each(apps)('the guide for %s shows or names every file that a new project lacks', (app) => {
  const guide = read(guides[app] ?? '')
  const files = filesOf(app).map((file) => relative(`examples/apps/${app}`, file))
  const missing = files.filter((file) => !inNewProject.test(file) && !guide.includes(file))
  expect(missing).toEqual([])
})

test('no application is installed with the workspace', () => {
  expect(read('pnpm-lock.yaml')).not.toContain('examples/apps')
})

test.each(apps)(
  'the lock file of %s fixes every version by its hash, and has no address that a package came from',
  (app) => {
    const { dependencies, devDependencies } = manifestOf(`examples/apps/${app}`)
    const lock = read(`examples/apps/${app}/package-lock.json`)
    expect(lock.match(/.*(?:https?:|git\+|file:|"resolved").*/g) ?? []).toEqual([])
    const { '': own, ...installed } = JSON.parse(lock).packages
    expect(own).toMatchObject({ dependencies, devDependencies })
    for (const [place, entry] of Object.entries<LockEntry>(installed)) {
      expect(entry.version, place).toMatch(/^\d+\.\d+\.\d+(?:-[\w.-]+)?(?:\+[\w.-]+)?$/)
      const isHashed = entry.integrity?.startsWith('sha512-') ?? entry.inBundle ?? false
      expect(isHashed, place).toBe(!place.startsWith('node_modules/@countersign/'))
    }
  },
)

test.each(apps)(
  'the lock file of %s has our packages as they are here: otherwise run `npm run apps -- --lock`',
  (app) => {
    const lock = JSON.parse(read(`examples/apps/${app}/package-lock.json`))
    for (const [place, entry] of Object.entries<LockEntry>(lock.packages)) {
      const one = ours.get(place.replace('node_modules/', ''))
      if (one === undefined) continue
      const { version, dependencies, peerDependencies } = one
      const inWorkspace = Object.entries(dependencies ?? {}).map(([name, range]) => [
        name,
        range === 'workspace:*' ? version : range,
      ])
      expect([place, entry.version, entry.dependencies ?? {}, entry.peerDependencies]).toEqual([
        place,
        version,
        Object.fromEntries(inWorkspace),
        peerDependencies,
      ])
    }
  },
)

test('all applications have the same model, and those for Node the same stores', () => {
  const [first = '', ...others] = apps.flatMap((app) => filesOf(app, 'model.ts')).map(read)
  expect(others.filter((text) => text !== first)).toEqual([])
  expect(others).toHaveLength(apps.length - 1)
  const alike = ['next', 'nuxt', 'solidstart', 'sveltekit']
    .flatMap((app) => filesOf(app, 'agent.ts'))
    .map(read)
  expect(new Set(alike).size).toBe(1)
})
