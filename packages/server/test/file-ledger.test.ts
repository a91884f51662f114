import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgent, type Ledger, scriptedModel } from '@countersign/server'
import { fileLedger, type SqliteModule } from '@countersign/server/node'
import { describeLedger } from '@countersign/testing/suites'
import { afterAll, expect, test, vi } from 'vitest'
import { HOUR, record } from './approval-record.js'

// the one that ledgers find: two copies of SQLite in one process do not see each other's locks
const sqlite: SqliteModule = await import(['node', 'sqlite'].join(':')).catch(
  () => import('@photostructure/sqlite'),
)

const folder = await mkdtemp(join(tmpdir(), 'countersign-ledger-'))
afterAll(() => rm(folder, { recursive: true }))
let files = 0
const newFile = () => join(folder, `${++files}.sqlite`)

const approve = { decision: 'approve', scope: 'once' } as const

/** An SQLite that says it is older than the one behind it. */
function older(version: string): SqliteModule {
  class Older {
    readonly #real: InstanceType<SqliteModule['DatabaseSync']>
    constructor(path: string) {
      this.#real = new sqlite.DatabaseSync(path)
    }
    exec(sql: string) {
      this.#real.exec(sql)
    }
    prepare(sql: string) {
      return this.#real.prepare(sql.replace('sqlite_version()', `'${version}'`))
    }
    close() {
      this.#real.close()
    }
  }
  return { DatabaseSync: Older }
}

for (const [name, module] of [
  ['fileLedger', undefined],
  ['fileLedger with an older SQLite', older('3.46.0')],
] as const) {
  describeLedger(
    name,
    async ({ now }) => {
      const path = newFile()
      const ledger = await fileLedger(path, { now, sqlite: module })
      const another = await fileLedger(path, { now, sqlite: module })
      return {
        ledger,
        another,
        close: () => {
          ledger.close()
          another.close()
        },
      }
    },
    { test, expect },
  )
}

test('what was asked, granted and settled is there after the file was closed and opened again', async () => {
  const path = newFile()
  const grant = { owner: 'alice', threadId: 'thread', toolName: 'remove', scopeKey: 'remove' }
  const before = await fileLedger(path)
  await before.issue(record('open'))
  await before.issue(record('done'))
  await before.claim(record('done'), approve, 'h1', 1000)
  await before.complete(record('done'), 'h1', { type: 'result', content: '1' })
  await before.grant({ ...grant, approved: true })
  await before.grant({ ...grant, toolName: 'write', approved: true })
  await before.revoke({ owner: 'alice', toolName: 'write' })
  before.close()
  const after = await fileLedger(path)
  expect(after.id).toBe(before.id)
  expect((await after.claim(record('open'), approve, 'h2', 1000)).status).toBe('claimed')
  expect(await after.claim(record('done'), approve, 'h2', 1000)).toEqual({
    status: 'repeat',
    outcome: { type: 'result', content: '1' },
    late: false,
  })
  expect((await after.list('alice')).map(({ toolName }) => toolName)).toEqual(['remove'])
  after.close()
})

test('a revocation outlives a restart: a grant in flight from before it is not made', async () => {
  const path = newFile()
  const before = await fileLedger(path)
  await before.issue(record('a'))
  const claim = await before.claim(record('a'), approve, 'h1', 1000)
  await before.revoke({ owner: 'alice' })
  before.close()
  const after = await fileLedger(path)
  const revision = claim.status === 'claimed' ? claim.revision : undefined
  const key = { owner: 'alice', threadId: 'thread', toolName: 'remove', scopeKey: 'remove' }
  expect(await after.grant({ ...key, approved: true, revision })).toEqual({ status: 'revoked' })
  after.close()
})

test('every file is a ledger of its own, readable by its user only', async () => {
  const [one, other] = [newFile(), newFile()]
  const ledgers = [await fileLedger(one), await fileLedger(other)]
  await ledgers[0]?.issue(record('a'))
  expect(ledgers[0]?.id === ledgers[1]?.id).toBe(false)
  if (process.platform !== 'win32') {
    expect((await stat(one)).mode & 0o777).toBe(0o600)
    expect((await stat(`${one}-wal`)).mode & 0o777).toBe(0o600)
  }
  for (const ledger of ledgers) ledger.close()
})

test('what has outlived its expiry leaves the file, and what is live never does', async () => {
  let now = 0
  const path = newFile()
  const ledger = await fileLedger(path, { now: () => now, maxSize: 400_000 })
  const big = 'x'.repeat(20_000)
  const issue = (id: string) => ledger.issue(record(id, { arguments: big, expiresAt: now + HOUR }))
  const statuses: string[] = []
  for (let index = 0; index < 40; index++) statuses.push((await issue(`a${index}`)).status)
  const kept = statuses.filter((status) => status === 'issued').length
  expect([kept > 5, statuses.at(-1)]).toEqual([true, 'full'])
  expect((await ledger.claim(record('a0'), approve, 'h', 1000)).status).toBe('claimed')
  now += HOUR + 60_000
  expect((await issue('later')).status).toBe('issued')
  expect(await ledger.lookup(record('a1'))).toBeUndefined()
  expect((await ledger.claim(record('a1'), approve, 'h', 1000)).status).toBe('not-issued')
  ledger.close()
})

test('the open requests of one thread have a limit in bytes, since one run reads them all; other threads do not feel it', async () => {
  const ledger = await fileLedger(newFile(), { maxOpenBytesPerThread: 50_000 })
  const big = 'x'.repeat(20_000)
  const issue = async (id: string, more = {}) =>
    (await ledger.issue(record(id, { arguments: big, ...more }))).status
  expect([await issue('a'), await issue('b'), await issue('c')]).toEqual(['issued', 'issued', 'full'])
  expect(await issue('c', { threadId: 'another' })).toBe('issued')
  await ledger.claim(record('a', { arguments: big }), approve, 'h', 1000)
  await ledger.complete(record('a', { arguments: big }), 'h', { type: 'result', content: '1' })
  expect(await issue('c')).toBe('issued')
  ledger.close()
})

test('S3.23 grants of one owner are bounded: the oldest goes, and is asked about again', async () => {
  let now = 0
  const ledger = await fileLedger(newFile(), { now: () => now, maxGrantsPerOwner: 3 })
  for (const toolName of ['a', 'b', 'c', 'd']) {
    now++
    await ledger.grant({ owner: 'alice', threadId: 't', toolName, scopeKey: toolName, approved: true })
  }
  expect((await ledger.list('alice', 't')).map(({ toolName }) => toolName)).toEqual(['b', 'c', 'd'])
  ledger.close()
})

test('texts that are not well-formed Unicode stay apart', async () => {
  const ledger = await fileLedger(newFile())
  await ledger.issue(record('a', { threadId: '\ud800' }))
  expect(await ledger.lookup(record('a', { threadId: '\ud801' }))).toBeUndefined()
  expect((await ledger.lookup(record('a', { threadId: '\ud800' })))?.record.threadId).toBe('\ud800')
  ledger.close()
})

test('the audit trail is bounded, and read whole however long it is', async () => {
  const ledger = await fileLedger(newFile(), { maxAuditEntries: 280 })
  for (let at = 1; at <= 320; at++) {
    await ledger.audit({ at, event: 'issued', ownerHash: 'h', threadId: 't' })
  }
  const read: number[] = []
  for await (const entry of ledger.auditTrail()) read.push(entry.at)
  expect([read.length, read[0], read.at(-1)]).toEqual([280, 41, 320])
  ledger.close()
})

for (const [name, module] of [
  ['', undefined],
  [', also with an older SQLite', older('3.46.0')],
] as const) {
  test(`while another process writes, the process goes on; then everything happens in the order of the calls${name}`, async () => {
    const path = newFile()
    const ledger = await fileLedger(path, { sqlite: module })
    await ledger.issue(record('a'))
    const other = new sqlite.DatabaseSync(path)
    other.exec('begin exclusive')
    const happened: string[] = []
    const claim = ledger.claim(record('a'), approve, 'h1', HOUR)
    const later = [
      ledger.lookup(record('a')).then((found) => found?.state.phase),
      ledger.claim(record('a'), approve, 'h2', HOUR).then(({ status }) => status),
      ledger.issue(record('b')).then(({ status }) => status),
      ledger.unsettled('alice', 'thread').then((found) => found.length),
    ]
    const noted = claim.then(({ status }) => happened.push(status))
    for (let round = 1; round <= 5; round++) {
      await new Promise((resolve) => setTimeout(resolve))
      happened.push(`round ${round}`)
    }
    other.exec('rollback')
    await noted
    expect(happened).toEqual(['round 1', 'round 2', 'round 3', 'round 4', 'round 5', 'claimed'])
    expect(await Promise.all(later)).toEqual(['claimed', 'in-progress', 'issued', 2])
    other.close()
    ledger.close()
  })
}

test('a lock that another process keeps is waited for no longer than five seconds, and each waiting call says so', async () => {
  const path = newFile()
  const ledger = await fileLedger(path)
  await ledger.issue(record('a'))
  const other = new sqlite.DatabaseSync(path)
  other.exec('begin immediate')
  vi.useFakeTimers()
  try {
    const calls = [ledger.issue(record('b')), ledger.claim(record('a'), approve, 'h1', HOUR)]
    const failed = calls.map((one) => one.catch(({ code, message }) => ({ code, message })))
    await vi.advanceTimersByTimeAsync(6000)
    const message = expect.stringMatching(/another process has kept it locked for 5 seconds/)
    expect(await Promise.all(failed)).toEqual(Array(2).fill({ code: 'ledger-unavailable', message }))
  } finally {
    vi.useRealTimers()
  }
  other.exec('rollback')
  expect((await ledger.claim(record('a'), approve, 'h1', HOUR)).status).toBe('claimed')
  expect(await ledger.lookup(record('b'))).toBeUndefined()
  other.close()
  ledger.close()
})

test('an SQLite from before 3.51.3 writes no write-ahead log', async () => {
  const modeOf = (path: string) => new sqlite.DatabaseSync(path).prepare('pragma journal_mode').get()
  const [old, current] = [newFile(), newFile()]
  const ledgers = [await fileLedger(old, { sqlite: older('3.51.2') }), await fileLedger(current)]
  expect(modeOf(current)).toEqual({ journal_mode: 'wal' })
  expect(Object.values(modeOf(old) ?? {})[0]).not.toBe('wal')
  for (const ledger of ledgers) ledger.close()
})

test('an SQLite from before 3.51.3 refuses a file while a newer one writes its log, whoever came first', async () => {
  const path = newFile()
  const old = await fileLedger(path, { sqlite: older('3.51.2') })
  const current = await fileLedger(path)
  await expect(old.issue(record('a'))).rejects.toThrow(/ledger .* cannot be used: .*too old to share/)
  expect((await current.issue(record('a'))).status).toBe('issued')
  current.close()
  old.close()
})

test('the same SQLite for all that share a file: the older one is told so', async () => {
  const path = newFile()
  const current = await fileLedger(path)
  await current.issue(record('a'))
  await expect(fileLedger(path, { sqlite: older('3.51.2') })).rejects.toThrow(/too old to share/)
  current.close()
})

test('a file that is no ledger is refused with its path', async () => {
  const path = newFile()
  await writeFile(
    path,
    'these are notes, not a database, and long enough to look like a header of one'.repeat(20),
  )
  await expect(fileLedger(path)).rejects.toMatchObject({ code: 'ledger-unavailable', data: { path } })
  await expect(fileLedger('')).rejects.toMatchObject({ code: 'invalid-option' })
  await expect(fileLedger(newFile(), { maxSize: 0 })).rejects.toMatchObject({ code: 'invalid-option' })
})

test('a ledger that was closed rejects with ledger-unavailable', async () => {
  const ledger = await fileLedger(newFile())
  ledger.close()
  await expect(ledger.issue(record('a'))).rejects.toMatchObject({ code: 'ledger-unavailable' })
})

test('what is read of the open rows of a thread does not grow with the words of their answers', async () => {
  const ledger = await fileLedger(newFile())
  const words = { reason: 'r'.repeat(4096), arguments: JSON.stringify({ a: '"'.repeat(100_000) }) }
  const edited = { ...approve, ...words }
  for (let index = 0; index < 20; index++) {
    await ledger.issue(record(`a${index}`))
    await ledger.claim(record(`a${index}`), edited, `h${index}`, HOUR)
    if (index > 9) await ledger.complete(record(`a${index}`), `h${index}`, { type: 'interrupted' })
  }
  const open = await ledger.unsettled('alice', 'thread')
  expect(open.map(({ state }) => state.phase)).toEqual([
    ...Array.from({ length: 10 }, () => 'claimed'),
    ...Array.from({ length: 10 }, () => 'interrupted'),
  ])
  expect(JSON.stringify(open).length).toBeLessThan(20_000)
  expect((await ledger.lookup(record('a19')))?.state).toMatchObject({ phase: 'interrupted', answer: edited })
  expect(await ledger.claim(record('a19'), edited, 'h', HOUR)).toEqual({ status: 'interrupted' })
  expect((await ledger.claim(record('a19'), approve, 'h', HOUR)).status).toBe('conflict')
  ledger.close()
})

test('the settled calls of a thread come without the words of their answers, and say that there was an edit', async () => {
  const ledger = await fileLedger(newFile())
  const edited = { ...approve, reason: 'r'.repeat(4096), arguments: `"${'x'.repeat(100_000)}"` }
  await ledger.issue(record('a'))
  await ledger.claim(record('a'), edited, 'h1', HOUR)
  await ledger.complete(record('a'), 'h1', { type: 'result', content: '1' })
  const settled = (await ledger.settled?.('alice', 'thread', ['call'])) ?? []
  expect(settled.map(({ state }) => state)).toEqual([
    {
      phase: 'done',
      answer: { ...approve, arguments: '' },
      outcome: { type: 'result', content: '1' },
      late: false,
    },
  ])
  expect((await ledger.claim(record('a'), edited, 'h2', HOUR)).status).toBe('repeat')
  ledger.close()
})

/** What version 1 made of a new file; its first files had no `words`. */
const VERSION_1 = [
  'create table meta (name text primary key, value) without rowid',
  `create table approvals (seq integer primary key, key text not null unique, thread text not null, open integer not null,
    kept_until real not null, record text not null, state text not null, words text)`,
  `create table grants (seq integer primary key, key text not null unique, owner text not null, thread text not null,
    kept_until real not null, body text not null)`,
  'create table revocations (owner text primary key, revision integer not null) without rowid',
  'create table audit (seq integer primary key, entry text not null)',
  `insert into meta values ('id', 'file_old'), ('revision', 3)`,
  'pragma user_version = 1',
]

for (const words of ['with', 'without'] as const) {
  test(`T29 a file of version 1 ${words} words of their own keeps its approvals, grants and audit trail`, async () => {
    const path = newFile()
    const old = new sqlite.DatabaseSync(path)
    for (const statement of VERSION_1) old.exec(statement)
    if (words === 'without') old.exec('alter table approvals drop column words')
    const edited = { ...approve, arguments: '{"a":1}' }
    const claimed = {
      phase: 'claimed',
      answer: edited,
      holder: 'h1',
      leaseUntil: Date.now() + HOUR,
      revision: 0,
    }
    const outcome = { type: 'result', content: '1' }
    const states = {
      a: claimed,
      b: { phase: 'issued' },
      c: { phase: 'done', answer: approve, outcome, late: false },
    }
    for (const [id, state] of Object.entries(states)) {
      const one = record(id, { toolCallId: `call ${id}` })
      const texts = [JSON.stringify(one), JSON.stringify(state)]
      old
        .prepare(
          'insert into approvals (key, thread, open, kept_until, record, state) values (?, ?, ?, ?, ?, ?)',
        )
        .run(id, 'thread', id === 'c' ? 0 : 1, Date.now() + HOUR, ...texts)
    }
    const grant = {
      owner: 'alice',
      threadId: 'thread',
      toolName: 'remove',
      scopeKey: 'remove',
      approved: true,
    }
    const body = { ...grant, id: 'grant_1', grantedAt: 1, expiresAt: Date.now() + HOUR }
    old
      .prepare('insert into grants (key, owner, thread, kept_until, body) values (?, ?, ?, ?, ?)')
      .run('g', '"alice"', '"thread"', body.expiresAt, JSON.stringify(body))
    old.prepare('insert into audit (entry) values (?)').run(JSON.stringify({ at: 1, event: 'issued' }))
    old.close()
    const ledger = await fileLedger(path)
    expect(ledger.id).toBe('file_old')
    expect((await ledger.unsettled('alice', 'thread')).map((one) => one.record.approvalId)).toEqual([
      'a',
      'b',
    ])
    expect((await ledger.lookup(record('a')))?.state).toEqual(claimed)
    expect(await ledger.claim(record('a'), edited, 'h2', HOUR)).toEqual({ status: 'in-progress' })
    expect((await ledger.claim(record('b'), edited, 'h3', HOUR)).status).toBe('claimed')
    expect(await ledger.claim(record('c'), approve, 'h4', HOUR)).toEqual({
      status: 'repeat',
      outcome,
      late: false,
    })
    expect((await ledger.settled?.('alice', 'thread', ['call c', 'call b']))?.length).toBe(1)
    expect(await ledger.list('alice')).toEqual([body])
    expect((await ledger.findGrant(grant, 'use'))?.id).toBe('grant_1')
    const trail: unknown[] = []
    for await (const entry of ledger.auditTrail()) trail.push(entry)
    expect(trail).toEqual([{ at: 1, event: 'issued' }])
    ledger.close()
    const again = await fileLedger(path)
    expect((await again.lookup(record('b')))?.state.phase).toBe('claimed')
    again.close()
  })
}

test('a file that a newer version has written is refused', async () => {
  const path = newFile()
  const newer = new sqlite.DatabaseSync(path)
  newer.exec('pragma user_version = 99')
  newer.close()
  await expect(fileLedger(path)).rejects.toThrow(/newer version/)
})

test('an agent refuses a file ledger that was not awaited', async () => {
  const forgotten = fileLedger(newFile())
  // JavaScript has no types to stop this.
  const ledger: Ledger = Object(forgotten)
  expect(() => createAgent({ model: scriptedModel([]), approvals: { ledger } })).toThrow(
    expect.objectContaining({ code: 'invalid-option', message: expect.stringContaining('await') }),
  )
  ;(await forgotten).close()
})
