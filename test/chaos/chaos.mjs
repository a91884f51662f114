// Approves calls on two servers that are killed (kill -9) again and again, over connections that break, and counts from the tools' own
// log what became of them; ends with 1 where a call ran twice, was lost, or fewer than half were completed. With the ledger `stateless`,
// which remembers nothing, calls do run twice: the count can fail.
//   npm run chaos [-- --calls N --ledger file|redis|sqlite|postgres|stateless --seed S]
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { fail, readArguments } from '../../scripts/arguments.mjs'
import { bundleForNode } from '../../scripts/bundle.mjs'
import { postgresForTests } from '../../scripts/postgres.mjs'
import { redisForTests } from '../../scripts/redis.mjs'

const { values } = readArguments('chaos', {
  options: {
    calls: { type: 'number', default: 1000 },
    ledger: { type: 'string' },
    seed: { type: 'number' },
  },
})
const { calls, seed = Date.now() % 1_000_000_000 } = values
const all = ['file', 'redis', 'sqlite', 'postgres']
const kinds = values.ledger === undefined ? all : [values.ledger]
if (calls < 1) fail('--calls must be at least 1.')
if (kinds.some((kind) => ![...all, 'stateless'].includes(kind)))
  fail(`--ledger must be one of ${all.join(', ')}, not ${values.ledger}.`)

const root = resolve(import.meta.dirname, '../..')
const folder = await mkdtemp(join(tmpdir(), 'countersign-chaos-'))
const [script, game] = await Promise.all([
  bundleForNode(join(root, 'test/machines/server.process.ts'), root),
  bundleForNode(join(import.meta.dirname, 'chaos.ts'), root),
])
const servers = {
  redis: kinds.includes('redis') ? await redisForTests('chaos with the ledger in Redis') : undefined,
  // what it says to have stored must be stored
  postgres: kinds.includes('postgres')
    ? await postgresForTests('chaos with the ledger in PostgreSQL', { durable: true })
    : undefined,
}
const reports = []
try {
  const { playChaos } = await import(pathToFileURL(game.file).href)
  console.log(`${calls} approved calls for each ledger, seed ${seed}`)
  for (const kind of kinds) {
    const isServed = kind === 'redis' || kind === 'postgres'
    if (isServed && servers[kind] === undefined) continue
    const ledger = isServed ? { kind, url: servers[kind].url } : { kind }
    const own = await mkdtemp(join(folder, `${kind}-`))
    reports.push({ kind, ...(await playChaos({ script: script.file, folder: own, ledger, calls, seed })) })
  }
} finally {
  for (const server of Object.values(servers)) await server?.stop()
  await Promise.all([script.remove(), game.remove(), rm(folder, { recursive: true, force: true })])
}

const columns = [
  'conversations',
  'completed',
  'interrupted',
  'refused',
  'lost',
  'starts',
  'ends',
  'kills',
  'drops',
]
console.log(
  ['ledger', ...columns, 'seconds'].map((name, index) => name.padStart(index === 0 ? 0 : 13)).join(' '),
)
for (const report of reports) {
  const cells = [...columns.map((name) => report[name]), report.seconds.toFixed(1)]
  console.log([report.kind.padEnd(8), ...cells.map((cell) => String(cell).padStart(13))].join(' '))
}
const wrong = reports.flatMap(({ kind, wrong }) => wrong.map((what) => `${kind}: ${what}`))
for (const what of wrong) console.log(`WRONG  ${what}`)
const untested = kinds.length - reports.length
if (untested > 0) console.log('NOT TESTED  a ledger whose server is missing')
console.log(
  wrong.length === 0
    ? 'Each tool ran at most once, and no call was lost.'
    : `${wrong.length} otherwise. Again: --seed ${seed}`,
)
process.exitCode = wrong.length > 0 || untested > 0 ? 1 : 0
