// What an approval costs on the server, step by step and for each ledger. The steps are the engine's own, taken out of its sources:
// what a person is asked is read, signed and issued; an answer is verified and looked up; a yes is claimed, and its outcome recorded.
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import pg from 'pg'
import { createClient } from 'redis'
import { findPostgres, startPostgres } from '../../../scripts/postgres.mjs'
import { findRedisServer, startRedis } from '../../../scripts/redis.mjs'
import { median } from '../measure.mjs'

const root = join(import.meta.dirname, '../../..')
const packages = join(root, 'packages')

const sources = `
export { readArguments } from './server/src/encoding/canonical.ts'
export { createKeyring } from './server/src/tokens/keys.ts'
export { signToken, verifyToken } from './server/src/tokens/token.ts'
export { createAgent, scriptedModel, tool } from './server/src/index.ts'
export { memoryLedger } from './server/src/ledger/memory-ledger.ts'
export { fileLedger } from './server/src/ledger/file-ledger.ts'
export { redisLedger } from './redis/src/index.ts'
export { ensureSchema, fromPg, fromSqlite, sqlLedger } from './sql/src/index.ts'`

/** The parts of the engine that are no one's to call, and the ledgers, in one module. */
async function openEngine(folder) {
  const outfile = join(folder, 'engine.mjs')
  const source = (name, file = 'index') => join(packages, name, `src/${file}.ts`)
  await build({
    stdin: { contents: sources, resolveDir: packages, loader: 'ts' },
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    external: ['@photostructure/sqlite', 'redis', 'pg'],
    nodePaths: [join(packages, 'server/node_modules')],
    alias: {
      '@countersign/server/prompt': source('server', 'prompt'),
      '@countersign/core/ag-ui': source('core', 'ag-ui'),
      '@countersign/core': source('core'),
      '@countersign/server/ledger-kit': source('server', 'ledger-kit'),
      '@countersign/server': source('server'),
    },
    logLevel: 'error',
  })
  return import(pathToFileURL(outfile).href)
}

/**
 * The ledgers to measure, each with how it is closed; `missing` where there is nothing to run it on. `statements()` is how many a database has
 * run.
 */
async function openLedgers(engine, folder) {
  const { memoryLedger, fileLedger, redisLedger } = engine
  const file = await fileLedger(join(folder, 'approvals.sqlite'))
  return [
    { name: 'memory', ledger: memoryLedger(), bound: 1, close: () => {} },
    { name: 'file', ledger: file, close: () => file.close() },
    await openRedis(redisLedger),
    await openPostgres(engine),
    await openSqlite(engine, folder),
  ]
}

async function openRedis(redisLedger) {
  const { REDIS_URL } = process.env
  const command = REDIS_URL ? undefined : findRedisServer()
  const name = 'Redis'
  if (!REDIS_URL && command === undefined) return { name, missing: 'not measured, there is no redis-server' }
  const server = command === undefined ? undefined : await startRedis(command)
  const client = createClient({ url: REDIS_URL ?? server.url })
  await client.connect()
  const close = async () => {
    await client.close()
    await server?.stop()
  }
  return { name, ledger: redisLedger(client, { prefix: `bench:${process.pid}:` }), close }
}

async function openPostgres(engine) {
  const programs = findPostgres()
  const name = 'PostgreSQL'
  if (programs === undefined) return { name, missing: 'not measured, there is no PostgreSQL' }
  // As in production, it writes to the disk before it says that it has.
  const server = await startPostgres(programs, { durable: true })
  const pool = new pg.Pool({ connectionString: server.url })
  const opened = await openSql(engine, engine.fromPg(pool))
  const close = async () => {
    await pool.end()
    await server.stop()
  }
  return { name, ...opened, close }
}

async function openSqlite(engine, folder) {
  const { DatabaseSync } = await import('@photostructure/sqlite')
  const database = new DatabaseSync(join(folder, 'rows.sqlite'))
  for (const pragma of ['journal_mode = wal', 'synchronous = full']) database.exec(`pragma ${pragma}`)
  const opened = await openSql(engine, engine.fromSqlite(database))
  return { name: 'SQLite', ...opened, close: () => database.close() }
}

async function openSql({ ensureSchema, sqlLedger }, connection) {
  await ensureSchema(connection)
  let statements = 0
  const counted = {
    ...connection,
    query(text, values) {
      statements++
      return connection.query(text, values)
    },
  }
  return { ledger: sqlLedger(counted), statements: () => statements }
}

const CALL = JSON.stringify({
  to: ['team@example.org'],
  subject: 'A summary of the week',
  text: 'x'.repeat(500),
})
const LEASE_MS = 30_000
const yes = { decision: 'approve', scope: 'once' }

/** The steps of one approval, in order; each gets what the one before has made. */
function stepsOf({ readArguments, createKeyring, signToken, verifyToken }, ledger) {
  const keyring = createKeyring({ secret: 'x'.repeat(32) })
  const read = (text) => {
    const found = readArguments(text)
    if (!found.ok) throw new Error(found.reason)
    return found.canonical
  }
  return {
    async sign(n) {
      const issuedAt = Math.floor(Date.now() / 1000) * 1000
      const question = {
        owner: 'ann',
        threadId: `thread-${n}`,
        approvalId: `approval-${n}`,
        runId: 'run',
        toolCallId: `call-${n}`,
        toolName: 'send_mail',
        arguments: read(CALL),
        scopes: ['once', 'session'],
        edits: ['subject'],
        issuedAt,
        expiresAt: issuedAt + 86_400_000,
      }
      const token = await signToken({ ...question, ledgerId: ledger.id }, keyring)
      const record = { ...question, idempotent: false, token }
      expect(await ledger.issue(record), 'issued')
      return record
    },
    async verify(record) {
      const expected = { ...record, ledgerId: ledger.id, arguments: read(CALL) }
      const verified = await verifyToken(record.token, expected, { keyring, now: Date.now })
      const entry = await ledger.lookup(record)
      if (!verified.ok || entry?.state.phase !== 'issued') throw new Error('a genuine answer was refused')
      return record
    },
    async claim(record) {
      const holder = `holder-${record.approvalId}`
      expect(await ledger.claim(record, yes, holder, LEASE_MS), 'claimed')
      expect(await ledger.complete(record, holder, { type: 'result', content: '{"sent":true}' }), 'recorded')
    },
  }
}

function expect({ status }, wanted) {
  if (status !== wanted) throw new Error(`${status}, where ${wanted} was expected`)
}

let approvals = 0

/** The median of each step over `count` approvals, after a warm-up, in milliseconds. */
async function measure(engine, ledger, count) {
  const steps = stepsOf(engine, ledger)
  const times = { sign: [], verify: [], claim: [] }
  const warmup = Math.ceil(count / 5)
  for (let n = 0; n < warmup + count; n++) {
    let value = approvals++
    for (const [name, step] of Object.entries(steps)) {
      const start = performance.now()
      value = await step(value)
      if (n >= warmup) times[name].push(performance.now() - start)
    }
  }
  return Object.entries(times).map(([name, each]) => [name, median(each)])
}

/**
 * The longest that approvals with a ledger keep the event loop, in milliseconds: in the pass that the machine has disturbed least. A pass of 150
 * is long enough for SQLite to move its log into the file, which takes longest.
 */
async function longestBlock(engine, ledger, count) {
  const passes = []
  for (let pass = 0; pass < 15; pass++) {
    let last = performance.now()
    let longest = 0
    let running = true
    const look = () => {
      const now = performance.now()
      longest = Math.max(longest, now - last)
      last = now
      if (running) setImmediate(look)
    }
    look()
    await measure(engine, ledger, count)
    running = false
    passes.push(longest)
  }
  return Math.min(...passes)
}

/**
 * What a mandate adds to a call: found when the gate decides, used right before the start. Its owner has about 1,000, as many per tool as a
 * ledger keeps, and the call matches the last of them.
 */
async function measureMandates(ledger, count) {
  const [tools, each] = [16, 64]
  const key = (tool) => ({ owner: 'ann', threadId: 'mandates', toolName: `tool_${tool}` })
  for (let tool = 0; tool < tools; tool++)
    for (let n = 0; n < each; n++)
      await ledger.grant({
        ...{ ...key(tool), scopeKey: `terms ${n}`, approved: true },
        terms: {
          ...{ label: `Pay supplier ${n}`, tool: 'v1', approvalId: `approval ${tool} ${n}` },
          where: [{ field: 'to', is: `supplier ${n}` }],
          budget: { field: 'amount', total: 1_000_000, unit: 'EUR', unitField: 'currency' },
        },
      })
  const kept = (await ledger.list('ann', 'mandates')).length
  if (kept !== tools * each) throw new Error(`${kept} mandates are kept`)
  const times = []
  const warmup = Math.ceil(count / 5)
  for (let n = 0; n < warmup + count; n++) {
    const input = { to: `supplier ${each - 1}`, amount: 1.5, currency: 'EUR' }
    const call = { ...key(n % tools), tool: 'v1', input, callKey: `call ${n}`, since: 0 }
    const start = performance.now()
    const looked = await ledger.findMandate(call, 'look')
    const used = await ledger.findMandate(call, 'use')
    if (n >= warmup) times.push(performance.now() - start)
    if (!looked?.approved || !used?.approved) throw new Error('no mandate was found')
  }
  return median(times)
}

const KB = 1024

/** A run that asks, with a preview of this many bytes: a diff with a quarter of its lines changed, as events in JSON. */
async function asking({ createAgent, memoryLedger, scriptedModel, tool }, bytes, count) {
  const line = (n, word) => `line ${n}: ${word} and some more text, as it is in a file of settings`
  const text = (word) =>
    Array.from({ length: bytes / 2 / KB }, (_, kb) =>
      Array.from({ length: 15 }, (__, n) => line(kb * 15 + n, n % 4 ? 'the same' : word)).join('\n'),
    ).join('\n')
  const preview = { kind: 'diff', name: 'settings.txt', before: text('before'), after: text('after') }
  const write = tool({
    name: 'write',
    description: 'Writes',
    input: { '~standard': { version: 1, vendor: 'bench', validate: (value) => ({ value }) } },
    parameters: { type: 'object' },
    needsApproval: true,
    ...(bytes > 0 && { preview: () => preview }),
    execute: () => 'written',
  })
  const turn = [
    { type: 'tool-call', id: 'call', name: 'write', arguments: CALL },
    { type: 'finish', reason: 'tool_calls' },
  ]
  const times = []
  const warmup = Math.ceil(count / 5)
  for (let n = 0; n < warmup + count; n++) {
    const approvals = { ledger: memoryLedger(), secret: 'x'.repeat(32) }
    const agent = createAgent({ model: scriptedModel([turn]), tools: [write], approvals, warn: () => {} })
    const messages = [{ id: 'u', role: 'user', content: 'go' }]
    const start = performance.now()
    let asked = false
    for await (const event of agent.run(
      { threadId: 't', runId: `r${n}`, messages },
      { context: { subject: 'ann' } },
    ))
      asked ||= JSON.stringify(event).includes('approval-requested')
    if (n >= warmup) times.push(performance.now() - start)
    if (!asked) throw new Error('nobody was asked')
  }
  return median(times)
}

const words = {
  sign: 'signing: arguments read, signed, issued',
  verify: 'verifying: arguments read, token checked, record looked up',
  claim: 'claiming: claimed, outcome recorded',
}

export async function run({ scale = 'full' } = {}) {
  const count = { tiny: 5, quick: 200, full: 2000 }[scale]
  // below the root, so that what is built there finds its dependencies
  const folder = join(root, `.verify/bench-${process.pid}`)
  await mkdir(folder, { recursive: true })
  const rows = []
  try {
    const engine = await openEngine(folder)
    for (const { name, ledger, bound, missing, statements, close } of await openLedgers(engine, folder)) {
      if (missing !== undefined) {
        rows.push({ name: `${name}: ${missing}`, value: null, unit: '' })
        continue
      }
      for (const [step, value] of await measure(engine, ledger, count))
        rows.push({ name: `${name}: ${words[step]}`, value, unit: 'ms', ...(bound && { bound }) })
      if (statements !== undefined) {
        const all = Math.ceil(count / 5) + count
        rows.push({ name: `${name}: statements for one approval`, value: statements() / all, unit: '' })
      }
      if (name === 'memory')
        rows.push({
          name: 'memory: a call that one of 1,024 mandates of its user lets through',
          value: await measureMandates(ledger, count),
          unit: 'ms',
          bound: 0.2,
          acceptance: ['W.22'],
        })
      if (name === 'file')
        rows.push({
          name: 'file: longest block of the event loop',
          value: await longestBlock(engine, ledger, Math.min(count, 150)),
          unit: 'ms',
          bound: 5,
        })
      await close()
    }
    const times = Math.min(count, 400)
    const [plain, previewed] = [await asking(engine, 0, times), await asking(engine, 100 * KB, times)]
    rows.push({ name: 'asking: a whole run that asks, without a preview', value: plain, unit: 'ms' })
    rows.push({
      name: 'asking: with a preview of 100 KB, more than without',
      value: previewed - plain,
      unit: 'ms',
      bound: 2,
      acceptance: ['V.20'],
    })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  return rows
}
