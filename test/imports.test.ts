import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { expect, test } from 'vitest'
import { packages } from '../scripts/packages.mjs'

const root = join(import.meta.dirname, '..')

/** Which packages the sources of a package may import from; what is not listed here fails the test. */
const packageRule: Record<string, readonly string[]> = {
  core: [],
  client: ['core'],
  server: ['core'],
  openai: ['server', 'core'],
  anthropic: ['server', 'core'],
  google: ['server', 'core'],
  mcp: ['server', 'core'],
  redis: ['server', 'core'],
  sql: ['server', 'core'],
  'ai-sdk': ['client', 'server', 'core'],
  langgraph: ['client', 'core'],
  tanstack: ['client', 'core'],
  react: ['client', 'core'],
  solid: ['client', 'core'],
  vue: ['client', 'core'],
  svelte: ['client', 'core'],
  devtools: ['client', 'core'],
  testing: ['core', 'client', 'devtools', 'server', 'react', 'solid', 'vue', 'svelte'],
}

/**
 * Which folders (or files of its root) each folder of a package's sources may import, itself aside. A folder names only folders
 * above it, so there is no way round.
 */
const folderRules: Record<string, Record<string, readonly string[]>> = {
  core: {
    value: [],
    json: [],
    protocol: ['value'],
    bytes: ['protocol'],
    machine: ['protocol', 'json', 'value'],
    conversions: ['machine', 'protocol', 'value'],
    'ag-ui': ['conversions', 'machine', 'protocol'],
    'stream-reader': ['ag-ui', 'machine', 'protocol', 'value'],
    'chat-store': ['machine', 'protocol', 'value'],
    'stream-processor': ['chat-store', 'stream-reader', 'machine', 'protocol', 'value'],
    mandates: [],
    preview: ['value'],
    tools: ['mandates', 'preview', 'protocol'],
    'print-json': [],
    display: ['print-json', 'protocol'],
    redact: [],
    live: ['protocol'],
    'approval-history': ['machine', 'tools', 'value'],
  },
  server: {
    encoding: [],
    limits: ['encoding'],
    model: [],
    observe: [],
    tools: ['observe', 'model', 'encoding'],
    prompt: ['tools', 'encoding'],
    mandates: ['encoding'],
    ledger: ['mandates', 'encoding'],
    tokens: ['ledger', 'encoding'],
    history: ['tools', 'model', 'encoding'],
    channel: ['encoding'],
    'run-log': ['encoding'],
    threads: ['ledger', 'encoding'],
    scope: [
      'run-log',
      'threads',
      'channel',
      'tokens',
      'ledger',
      'mandates',
      'tools',
      'observe',
      'model',
      'limits',
      'encoding',
    ],
    gate: ['scope', 'tokens', 'ledger', 'mandates', 'tools', 'encoding'],
    answers: ['gate', 'scope', 'history', 'tokens', 'ledger', 'mandates', 'tools', 'encoding'],
    conversation: ['threads', 'gate', 'scope', 'history', 'tools', 'encoding'],
    run: [
      'conversation',
      'threads',
      'answers',
      'gate',
      'scope',
      'channel',
      'run-log',
      'history',
      'ledger',
      'tools',
      'observe',
      'model',
      'limits',
      'encoding',
    ],
    plan: ['run', 'answers', 'scope', 'channel', 'history', 'prompt', 'ledger', 'tools', 'encoding'],
    http: [
      'run',
      'conversation',
      'answers',
      'gate',
      'scope',
      'channel',
      'run-log',
      'history',
      'ledger',
      'limits',
      'encoding',
    ],
  },
}
/** The vocabulary of a package, open to all of its folders. */
const shared: Record<string, readonly string[]> = { core: ['messages', 'errors'], server: ['outcome'] }
/** The files that a package publishes; they may import everything and nothing imports them. */
const entries: Record<string, readonly string[]> = {
  core: ['index'],
  server: ['index', 'node', 'ledger-kit', 'model-kit', 'http-kit', 'opentelemetry'],
}

/** No I/O, no clock, no DOM, no ids of its own. */
const forbiddenInCore = [
  /from 'node:/,
  /\bDate\.now\b/,
  /\bnew Date\(\)/,
  /\bperformance\.now\b/,
  /\bMath\.random\b/,
  /\bcrypto\b/,
  /\bfetch\(/,
  /\bdocument\b\./,
  /\bwindow\b\./,
]
/** Only the store's scheduler may hold a timer. */
const timers = /\b(setTimeout|setInterval|setImmediate|requestAnimationFrame|queueMicrotask)\b/
const mayHoldTimers = 'packages/core/src/store/schedule.ts'

const files = packages.flatMap(({ name }) => {
  const sources = readdirSync(join(root, 'packages', name, 'src'), { recursive: true, encoding: 'utf8' })
  return sources
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => `packages/${name}/src/${file.replaceAll('\\', '/')}`)
})

interface Import {
  file: string
  /** What the import names, as written. */
  target: string
}

const statement = /^(?:import|export)\s(?:[^'"=]*?\bfrom\s*)?['"]([^'"]+)['"]/gm
const expression = /\bimport\(\s*['"]([^'"]+)['"]/g

function importsOf(file: string): Import[] {
  const source = withoutComments(readFileSync(join(root, file), 'utf8'))
  const found = [...source.matchAll(statement), ...source.matchAll(expression)]
  return found.map(([, target]) => ({ file, target: target ?? '' }))
}

function withoutComments(source: string): string {
  return source.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '')
}

const packageOf = (file: string) => file.split('/')[1] ?? ''

/** The folder of its package's sources that a file lies in, or the name of the file where it lies in their root. */
function areaOf(file: string): string {
  return (file.split('/')[3] ?? '').replace(/\.tsx?$/, '')
}

const imports = files.flatMap(importsOf)
const between = ({ file, target }: Import) => `${file} imports ${target}`

test('packages import one another only in the direction of the one-way rule', () => {
  const breaches = imports.filter(({ file, target }) => {
    const [, imported] = /^@countersign\/([^/]+)/.exec(target) ?? []
    return imported !== undefined && !(packageRule[packageOf(file)] ?? []).includes(imported)
  })
  expect(breaches.map(between)).toEqual([])
})

test('every package has a place in the one-way rule', () => {
  const known = Object.keys(packageRule)
  expect([...new Set(files.map(packageOf))].filter((name) => !known.includes(name))).toEqual([])
})

test('no relative import leaves its own package', () => {
  const breaches = imports.filter(({ file, target }) => {
    if (!target.startsWith('.')) return false
    return !posix.join(dirname(file), target).startsWith(`packages/${packageOf(file)}/src/`)
  })
  expect(breaches.map(between)).toEqual([])
})

test('no package imports a published entry of its own', () => {
  const breaches = imports.filter(({ file, target }) => target.startsWith(`@countersign/${packageOf(file)}`))
  expect(breaches.map(between)).toEqual([])
})

for (const [name, rule] of Object.entries(folderRules)) {
  const isShared = (area: string) => (shared[name] ?? []).includes(area)
  const isEntry = (area: string) => (entries[name] ?? []).includes(area)

  test(`the folders of ${name} import one another only in the direction of the one-way rule`, () => {
    const breaches = imports.filter(({ file, target }) => {
      if (packageOf(file) !== name || !target.startsWith('.')) return false
      const from = areaOf(file)
      const to = areaOf(posix.join(dirname(file), target).replace(/\.js$/, ''))
      if (isEntry(from) || from === to || isShared(to)) return false
      return isShared(from) || !(rule[from] ?? []).includes(to)
    })
    expect(breaches.map(between)).toEqual([])
  })

  test(`every folder of ${name} has a place in its one-way rule, which names only folders above it`, () => {
    const folders = Object.keys(rule)
    const areas = files.filter((file) => packageOf(file) === name).map(areaOf)
    const placed = (area: string) => folders.includes(area) || isShared(area) || isEntry(area)
    expect([...new Set(areas)].filter((area) => !placed(area))).toEqual([])
    for (const [index, folder] of folders.entries()) {
      expect((rule[folder] ?? []).filter((other) => !folders.slice(0, index).includes(other))).toEqual([])
    }
  })
}

/** The files that import one another in a circle, by way of however many. */
function circles(): string[] {
  const targets = (file: string) =>
    importsOf(file).flatMap(({ target }) =>
      target.startsWith('.') ? [posix.join(dirname(file), target).replace(/\.js$/, '')] : [],
    )
  const named = (file: string) => file.replace(/\.tsx?$/, '')
  let left = new Map(files.map((file) => [named(file), targets(file)]))
  for (let before = -1; before !== left.size; ) {
    before = left.size
    const imported = new Set([...left.values()].flat())
    left = new Map(
      [...left].flatMap(([file, all]) => {
        const within = all.filter((target) => left.has(target))
        return within.length > 0 && imported.has(file) ? [[file, within]] : []
      }),
    )
  }
  return [...left].map(([file, within]) => `${file} imports ${within.join(', ')}`)
}

test('no files of a package import one another in a circle, types included', () => {
  expect(circles()).toEqual([])
})

test('core has no I/O, no clock, no DOM and no randomness', () => {
  const breaches = files
    .filter((file) => packageOf(file) === 'core')
    .flatMap((file) => {
      const source = withoutComments(readFileSync(join(root, file), 'utf8'))
      const forbidden = file === mayHoldTimers ? forbiddenInCore : [...forbiddenInCore, timers]
      return forbidden
        .filter((pattern) => pattern.test(source))
        .map((pattern) => `${file} has ${pattern.source}`)
    })
  expect(breaches).toEqual([])
})

test('no package for browsers imports a module of Node', () => {
  const breaches = imports.filter(
    ({ file, target }) => ['core', 'client', 'react'].includes(packageOf(file)) && target.startsWith('node:'),
  )
  expect(breaches.map(between)).toEqual([])
})

test('S4.3 what a model is knows nothing of approvals: the engine asks, adapters do not', () => {
  const breaches = imports.filter(
    ({ file, target }) =>
      file.startsWith('packages/server/src/model/') &&
      ![
        '@countersign/core',
        '../outcome.js',
        './model.js',
        './model-error.js',
        './check-request.js',
      ].includes(target),
  )
  expect(breaches.map(between)).toEqual([])
  const sources = files.filter((file) => file.startsWith('packages/server/src/model/'))
  const mention = sources.filter((file) => /approval-requested/.test(readFileSync(join(root, file), 'utf8')))
  expect(mention).toEqual([])
})

/** The SDK that each adapter for a provider speaks through. */
const sdkOf: Record<string, RegExp> = {
  openai: /^openai(\/|$)/,
  anthropic: /^@anthropic-ai\/sdk(\/|$)/,
  google: /^@google\/genai(\/|$)/,
}

test('S3.55 to S3.60 adapters hold no approval logic: they know the engine, their SDK and nothing that asks or decides', () => {
  const own = imports.filter(({ file }) => packageOf(file) in sdkOf)
  const breaches = own.filter(({ file, target }) => {
    const known = ['@countersign/core', '@countersign/server', '@countersign/server/model-kit']
    const allowed = known.includes(target) || target.startsWith('.')
    return !allowed && !sdkOf[packageOf(file)]?.test(target)
  })
  expect(breaches.map(between)).toEqual([])
  const logic = /needsApproval|approval-requested|approval-responded|createAgent|[lL]edger|decideGate|token\b/
  const mention = files.filter((file) => packageOf(file) in sdkOf && logic.test(withoutComments(read(file))))
  expect(mention).toEqual([])
})

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}
