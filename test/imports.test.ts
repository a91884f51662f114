import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')

/** Which packages the sources of a package may import from; what is not listed here fails the test. */
const packageRule: Record<string, readonly string[]> = {
  core: [],
  client: ['core'],
  server: ['core'],
  react: ['client', 'core'],
  testing: ['core', 'client', 'server', 'react'],
}

/** Which folders (or files of its root) of core each folder of core may import, itself and `shared` aside. */
const coreRule: Record<string, readonly string[]> = {
  json: [],
  protocol: [],
  bytes: ['protocol'],
  machine: ['protocol', 'json'],
  store: ['machine', 'protocol'],
  conversions: ['machine', 'protocol'],
  prompt: ['protocol'],
  'ai-sdk': ['protocol'],
  tools: ['protocol'],
  display: ['protocol'],
}
/** The vocabulary of messages and errors, open to all of core. */
const shared = ['messages', 'errors']

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

const files = readdirSync(join(root, 'packages')).flatMap((name) => {
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

/** The folder of core's sources that a file lies in, or the name of the file where it lies in their root. */
function areaOfCore(file: string): string {
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

test('the folders of core import one another only in the direction of the one-way rule', () => {
  const breaches = imports.filter(({ file, target }) => {
    if (packageOf(file) !== 'core' || !target.startsWith('.')) return false
    const from = areaOfCore(file)
    const to = areaOfCore(posix.join(dirname(file), target).replace(/\.js$/, ''))
    if (from === 'index' || from === to || shared.includes(to)) return false
    return shared.includes(from) || !(coreRule[from] ?? []).includes(to)
  })
  expect(breaches.map(between)).toEqual([])
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
