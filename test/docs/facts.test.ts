import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { nextStep } from '@countersign/client'
import type { ApprovalErrorCode } from '@countersign/core'
import { expect, test } from 'vitest'
import { packages } from '../../scripts/packages.mjs'
import { allPages, blocksOf, proseOf, readPage, writtenPages } from './markdown.js'

const root = join(import.meta.dirname, '../..')

interface Manifest {
  readonly name: string
  readonly engines: { readonly node: string }
  readonly exports: Readonly<Record<string, string | { readonly require?: unknown }>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly publishConfig?: { readonly access?: string; readonly provenance?: boolean }
  readonly files: readonly string[]
  readonly license: string
  readonly description: string
}

function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
}

const manifests: readonly Manifest[] = packages.map(({ manifest }) => manifest)

/** The rows of all tables of a page, cell by cell. */
function rowsOf(page: string): readonly (readonly string[])[] {
  const lines = proseOf(page).match(/^ *\|.*\|$/gm) ?? []
  return lines.map((line) =>
    line
      .trim()
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim().replaceAll('\\|', '|')),
  )
}

/** The members of a union of literals, in the sources. */
function literalsOf(file: string, type: string): readonly string[] {
  const source = readFileSync(join(root, file), 'utf8')
  const [, union = ''] = new RegExp(`export (?:type|const) ${type} =([\\s\\S]*?)\\n\\n`).exec(source) ?? []
  return [...union.matchAll(/'([^']+)'/g)].map(([, literal = '']) => literal)
}

test('the table of error codes has every code of the sources once, and no other', () => {
  const file = 'packages/core/src/errors.ts'
  const codes = ['ErrorCode', 'refusalCodes', 'ApprovalErrorCode'].flatMap((name) => literalsOf(file, name))
  expect(codes.length).toBeGreaterThan(30)
  const shown = rowsOf('docs/errors.md').flatMap(([cell = '']) => /^`([\w-]+)`$/.exec(cell)?.[1] ?? [])
  expect(shown.toSorted()).toEqual(codes.toSorted())
})

test('what helps with a refused answer is what `nextStep` says', () => {
  const words = {
    'ask-again': 'ask again',
    'sign-in': 'sign in',
    reload: 'reload',
    check: 'look',
    correct: 'answer again',
    confirm: 'answer again',
    retry: 'retry()',
    none: 'nothing',
  }
  const rows = new Map(rowsOf('docs/errors.md').map(([code, , helps]) => [code, helps]))
  for (const code of literalsOf('packages/core/src/errors.ts', 'refusalCodes')) {
    const { next } = nextStep(code as ApprovalErrorCode)
    expect([code, rows.get(`\`${code}\``)?.includes(words[next])]).toEqual([code, true])
  }
})

test('every code has what happened and what helps', () => {
  for (const [code = '', happened = '', helps = ''] of rowsOf('docs/errors.md')) {
    if (code.startsWith('`')) expect([code, happened !== '', helps !== '']).toEqual([code, true, true])
  }
})

test('the support page tells the peers, the module formats and the Node of every package', () => {
  const rows = new Map(rowsOf('docs/support.md').map((row) => [row[0], row]))
  for (const { name, engines, exports, peerDependencies = {} } of manifests) {
    const [, peers = '', , commonJs] = rows.get(`\`${name}\``) ?? []
    const told = [...peers.matchAll(/`([^`]+)` ([\d^>=.| ]+)/g)].map(([, peer, range = '']) => [
      peer,
      range.trim(),
    ])
    expect([name, Object.fromEntries(told)]).toEqual([name, peerDependencies])
    const entry = exports['.']
    const required = typeof entry === 'object' && 'require' in entry
    expect([name, commonJs]).toEqual([name, required ? 'yes' : 'no'])
    expect([name, engines.node]).toEqual([name, rows.get('Node')?.[1]])
  }
})

test('the pages name Node as the packages do', () => {
  const version = /\d+\.\d+/.exec(manifestOf('.').engines.node)?.[0]
  // the benchmark names the one that it ran on
  const pages = allPages().filter((page) => page !== 'docs/performance.md')
  const named = pages.flatMap((page) =>
    [...proseOf(page).matchAll(/Node (\d+\.\d+)/g)].map(([, told]) => ({ page, told })),
  )
  expect(named.length).toBeGreaterThan(2)
  expect(named.filter(({ told }) => told !== version)).toEqual([])
})

test('sizes that a page names are the budgets of the build', () => {
  const budgets = new Set(
    [...readPage('scripts/size.mjs').matchAll(/(?:first|later): ([\d.]+)/g)].map(
      ([, limit]) => `${limit} KiB`,
    ),
  )
  const aims = new Set(['16 KiB', '12 KiB'])
  const other = /MiB|Mi\b/
  const named = writtenPages().flatMap((page) =>
    [...proseOf(page).matchAll(/\d+(?:\.\d+)? KiB/g)].map(([told]) => ({ page, told })),
  )
  expect(named.length).toBeGreaterThan(1)
  expect(named.filter(({ told }) => !budgets.has(told) && !aims.has(told) && !other.test(told))).toEqual([])
})

test('sizes that were measured are at most their budgets, and not more than half a KiB below', () => {
  const size = readPage('scripts/size.mjs')
  const [, client, later] = /imports: client, first: ([\d.]+), later: ([\d.]+)/.exec(size)?.map(Number) ?? []
  const [, binding] = /\$\{name\}: on top of the client`[\s\S]*?first: ([\d.]+)/.exec(size)?.map(Number) ?? []
  if (client === undefined || later === undefined || binding === undefined) throw new Error('No budgets.')
  const measured = rowsOf('docs/performance.md').flatMap((row) => {
    const [, what = '', told = ''] = row
    const limit = [
      [/^ChatClient and fetch/, client],
      [/^the same with useChat/, client + binding],
      [/^the part of the client that loads later/, later],
    ].flatMap(([name, most]) => (name instanceof RegExp && name.test(what) ? Number(most) : []))
    return limit.map((most) => ({ what, below: most - Number.parseFloat(told) }))
  })
  expect(measured.length).toBe(6)
  expect(measured.filter(({ below }) => !(below >= 0 && below <= 0.5))).toEqual([])
})

test('a size that stands twice on the performance page is the same there', () => {
  const sizeOf = (row: RegExp, column: number) =>
    rowsOf('docs/performance.md').flatMap((cells) => {
      const named = cells.find((cell) => row.test(cell))
      return named === undefined ? [] : [Number.parseFloat(cells[column] ?? '')]
    })
  for (const framework of ['react', 'solid', 'vue', 'svelte']) {
    const told = sizeOf(new RegExp(`^the same with useChat of ${framework}$`), 2)
    expect([framework, told]).toEqual([
      framework,
      sizeOf(new RegExp(`^Countersign: useChat of ${framework},`), 2),
    ])
  }
  expect(sizeOf(/^ChatClient and fetch/, 2)).toEqual(sizeOf(/^Countersign: ChatClient,/, 2))
})

test('every code that the error of a call can have stands on the page of errors', () => {
  const sources = ['core', 'client', 'server', 'ai-sdk'].flatMap((name) =>
    readdirSync(join(root, 'packages', name, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => readFileSync(join(root, 'packages', name, 'src', file), 'utf8')),
  )
  const codes = sources.flatMap((source) =>
    [
      ...source.matchAll(/(?:message|reason): [^\n]*[,\n]\s*code: '([a-z-]+)'/g),
      ...source.matchAll(/failed\('\w+', [^\n]*, '([a-z-]+)'\)/g),
    ].map(([, code = '']) => code),
  )
  expect(codes).toEqual(expect.arrayContaining(['interrupted', 'result-unavailable', 'not-stored']))
  const told = readPage('docs/errors.md')
  expect(codes.filter((code) => !told.includes(`\`${code}\``))).toEqual([])
})

test('every code with which an open run or a whole request is turned away stands on the page of errors', () => {
  const codes = literalsOf('packages/server/src/channel/answer-queue.ts', 'DeliveryCode')
  expect(codes.length).toBeGreaterThan(2)
  const told = readPage('docs/errors.md')
  expect([...codes, 'internal'].filter((code) => !told.includes(`\`${code}\``))).toEqual([])
})

test('what the README says of other servers is what `npm run compare` wrote', () => {
  const named = ([cell = '']: readonly string[]) => /^`([\w-]+)`: /.exec(cell)?.[1]
  const claims = rowsOf('README.md').filter((row) => named(row) !== undefined)
  expect(claims.length).toBeGreaterThan(4)
  if (!existsSync(join(root, 'docs/compare.md'))) return
  // the first table: each server as its documentation sets it up
  for (const claim of claims) {
    const measured = rowsOf('docs/compare.md').find((row) => named(row) === named(claim)) ?? []
    expect([named(claim), ...claim.slice(1)]).toEqual([named(claim), ...measured.slice(1)])
  }
})

test('versions of peers that the migration pages were read from are the ones that are installed', () => {
  const { devDependencies } = JSON.parse(readPage('test/package.json'))
  const told = writtenPages().flatMap((page) =>
    [...proseOf(page).matchAll(/`((?:@[\w-]+\/)?[\w-]+)` (\d+\.\d+\.\d+)/g)].map(([, name = '', version]) => {
      return { page, name, version }
    }),
  )
  expect(told.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['@tanstack/ai', 'ai', '@copilotkit/core']),
  )
  expect(told.filter(({ name, version }) => devDependencies[name] !== version)).toEqual([])
  const spelled = /version (\d+\.\d+\.\d+)/.exec(proseOf('docs/migrating-from-the-ai-sdk.md'))?.[1]
  expect(spelled).toBe(devDependencies.ai)
})

test('defaults that the pages name are those of the sources', () => {
  const settings = readPage('packages/server/src/scope/settings.ts')
  const options = readPage('packages/client/src/options.ts')
  expect(settings).toContain('Seconds until a request expires. Default: 24 hours')
  expect(proseOf('docs/approvals.md')).toContain('`expiresIn` | a day')
  const continuations = /Default (\d+)\./.exec(
    options.match(/How many requests may follow.*/)?.[0] ?? '',
  )?.[1]
  expect(proseOf('docs/chained-approvals.md')).toContain(`\`maxContinuations\` (${continuations})`)
  const keepAlive = /KEEP_ALIVE_MS = ([\d_]+)/.exec(readPage('packages/server/src/http/sse.ts'))?.[1]
  const seconds = Number(keepAlive?.replaceAll('_', '')) / 1000
  expect(proseOf('docs/machines.md')).toContain(`idle timeout above ${seconds} seconds`)
})

/** Numbers of a page, each with the place in the sources that it is copied from. */
const numbers: readonly (readonly [page: string, told: RegExp, source: string, said: RegExp])[] = [
  [
    'packages/redis/README.md',
    /`timeout` \(([\d,]+) ms/,
    'packages/redis/src/redis.ts',
    /timeout = ([\d_]+)/,
  ],
  [
    'packages/redis/README.md',
    /`maxAuditEntries` \(([\d,]+)\)/,
    'packages/redis/src/redis-ledger.ts',
    /options\.maxAuditEntries \?\? ([\d_]+)/,
  ],
  [
    'packages/anthropic/README.md',
    /`max_tokens` (\d+)/,
    'packages/anthropic/src/to-request.ts',
    /defaultMaxTokens = (\d+)/,
  ],
  [
    'docs/security.md',
    /of a message on a socket \| (\d+) MiB/,
    'packages/server/src/limits.ts',
    /bodyBytes: (\d+) \* MIB/,
  ],
  [
    'docs/security.md',
    /at least (\d+) random bytes/i,
    'packages/server/src/tokens/keys.ts',
    /MIN_SECRET_BYTES = (\d+)/,
  ],
  [
    'docs/install.md',
    /your Node is ([\d.]+) or newer/,
    'packages/server/src/ledger/file-ledger-sqlite.ts',
    /Node ([\d.]+) and newer has it/,
  ],
  [
    'docs/start.md',
    /one run may call the model \((\d+) by default/,
    'packages/server/src/scope/settings.ts',
    /call the model\. Default (\d+)\./,
  ],
  ['docs/support.md', /tested with ([\d.]+)/, 'package.json', /"typescript": "([\d.]+)"/],
  ['docs/support.md', /tested with [\d.]+ and ([\d.]+)/, 'scripts/package.json', /"typescript": "([\d.]+)"/],
]

test('numbers that the pages name stand in the sources', () => {
  const plain = (found: RegExpExecArray | null) => found?.[1]?.replace(/[_,]/g, '')
  for (const [page, told, source, said] of numbers) {
    const number = plain(told.exec(proseOf(page)))
    expect([page, number]).toEqual([page, plain(said.exec(readPage(source)))])
    expect(number).toBeDefined()
  }
})

test('every package is ready to be published with provenance, says what it is, and takes its README along', () => {
  for (const { name, publishConfig, files, license, description } of manifests) {
    expect([name, publishConfig, files, license]).toEqual([
      name,
      { access: 'public', provenance: true },
      name === '@countersign/sql' ? ['dist', 'schema', 'README.md'] : ['dist', 'README.md'],
      'MIT',
    ])
    expect([name, description.length > 20]).toEqual([name, true])
  }
})

test('a page that opens a stored conversation without a framework also attaches its client, or nothing would be loaded', () => {
  const opened = writtenPages()
    .flatMap(blocksOf)
    .filter(({ code }) => /new ChatClient\(\{[^}]*\.\.\.(?:serverThreads\(|threads\b)/.test(code))
  expect(opened.length).toBeGreaterThan(1)
  const idle = opened.filter(({ code }) => !/\.(?:attach|sendMessage)\(/.test(code))
  expect(idle.map(({ page, line }) => `${page}:${line}`)).toEqual([])
})

test('a page of an application whose answers outlive a reload says so of one that was not sent, with a button', () => {
  const shown = allPages()
    .filter((page) => page.startsWith('docs/'))
    .flatMap(blocksOf)
    .filter(({ code }) => code.includes('serverThreads(') && code.includes('nextStep('))
  expect(shown.length).toBeGreaterThan(5)
  const without = shown.filter(({ code }) => !code.includes('unsentIn('))
  expect(without.map(({ page, file }) => `${page}: ${file}`)).toEqual([])
})

test('a module that exports its client waits for no reply while it loads, or the page stays empty until it has ended', () => {
  const modules = writtenPages()
    .flatMap(blocksOf)
    .filter(({ code }) => /^export const \w+ = new ChatClient\(/m.test(code))
  expect(modules.length).toBeGreaterThan(0)
  const waiting = modules.filter(({ code }) => /^await \w+\.(?:retry|sendMessage)\(/m.test(code))
  expect(waiting.map(({ page, line }) => `${page}:${line}`)).toEqual([])
})

test('the README of every package has its name, how to install it, and an example', () => {
  for (const { name } of manifests) {
    const page = `packages/${name.slice('@countersign/'.length)}/README.md`
    const blocks = blocksOf(page)
    expect(readPage(page).split('\n', 1), page).toEqual([`# ${name}`])
    expect([name, blocks.some(({ language, code }) => language === 'sh' && code.includes(name))]).toEqual([
      name,
      true,
    ])
    expect([name, blocks.some(({ code }) => code.includes(`from '${name}`))]).toEqual([name, true])
  }
})

test('every package that is published is in the README', () => {
  const readme = readPage('README.md')
  for (const { name } of manifests) {
    expect(readme).toContain(name.slice('@countersign'.length))
  }
})

test('F49 the page about security cites sections that AISVS 1.0 has', () => {
  const page = readFileSync(join(root, 'docs/security.md'), 'utf8')
  const sections = [...page.matchAll(/^\| ([\d.]+) \| /gm)].map(([, section]) => section)
  expect([...new Set(sections)]).toEqual(['9.2', '9.6.2', '12.4.2'])
  expect(page).not.toMatch(/\bC14\b/)
})

test('the content security policy on the security page is that of the example pages, which the page tests load', () => {
  const [, policy] =
    /'content-security-policy':\s*"([^"]+)"/.exec(readPage('examples/server/src/http.ts')) ?? []
  const shown = blocksOf('docs/security.md').map(({ code }) => code.trim())
  expect(shown).toContain(policy)
  expect(readPage('test/e2e/held-server.ts')).toContain('pageServer(')
})
