import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  ensureSchema,
  fromPg,
  type SqlConnection,
  schemaStatements,
  sqlAnswerChannel,
  sqlLedger,
  sqlRunLog,
} from '@countersign/sql'
import { describeLedger } from '@countersign/testing/suites'
import { expect, onTestFinished, test } from 'vitest'
import { findPostgres, startPostgres } from '../../../scripts/postgres.mjs'
import { HOUR, record, usesUnlessDenied } from '../../server/test/approval-record.js'
import { newPrefix, type TestDatabase, useDatabases } from './databases.js'

const { databases, newPool, newTables, url } = await useDatabases('the ledger in PostgreSQL')

const approve = { decision: 'approve', scope: 'once' } as const

for (const database of databases) {
  const testHere = test.skipIf(!database.isThere)
  describeLedger(
    `T23 sqlLedger on ${database.name}`,
    async ({ now }) => {
      const { one, other, prefix } = await newTables(database)
      return { ledger: sqlLedger(one, { prefix, now }), another: sqlLedger(other, { prefix, now }) }
    },
    { test: testHere, expect },
  )

  testHere(`T26 ensureSchema may be called twice, and by ten at once (${database.name})`, async () => {
    const [one, other] = await database.connect()
    const prefix = newPrefix()
    await Promise.all(
      Array.from({ length: 10 }, (_, index) => ensureSchema(index % 2 === 0 ? one : other, { prefix })),
    )
    await ensureSchema(one, { prefix })
    expect(await sqlLedger(one, { prefix }).issue(record('a'))).toEqual({ status: 'issued' })
  })

  testHere(
    `W12 the first standing denial stops a use that was decided before (${database.name})`,
    async () => {
      const { one, other, prefix } = await newTables(database)
      const denying = sqlLedger(other, { prefix })
      let between: (() => Promise<unknown>) | undefined
      const paused: SqlConnection = {
        ...one,
        query: async (text, values) => {
          const work = text.startsWith('update') ? between : undefined
          if (work !== undefined) between = undefined
          await work?.()
          return one.query(text, values)
        },
      }
      await usesUnlessDenied(sqlLedger(paused, { prefix }), denying, (work) => {
        between = work
      })
    },
  )

  testHere(`the tables may lie in a schema of their own (${database.name})`, async () => {
    const [one, other] = await database.connect()
    const schema = one.dialect === 'sqlite' ? 'main' : newPrefix().replace(/_$/, '')
    if (one.dialect !== 'sqlite') await one.query(`create schema ${schema}`, [])
    const name = newPrefix()
    const prefix = `${schema}.${name}`
    await ensureSchema(one, { prefix })
    await ensureSchema(other, { prefix })
    const indexes =
      one.dialect === 'sqlite'
        ? "select name from main.sqlite_master where type = 'index'"
        : `select indexname as name from pg_indexes where schemaname = '${schema}'`
    const found = (await one.query(indexes, [])).map((row) => String(row.name))
    const expected = ['rows_list', 'rows_tag', 'rows_past', 'runs_past', 'answers_of']
    expect(found).toEqual(expect.arrayContaining(expected.map((index) => `${name}${index}`)))
    const ledger = sqlLedger(one, { prefix })
    expect(await ledger.issue(record('a'))).toEqual({ status: 'issued' })
    expect((await sqlLedger(other, { prefix }).claim(record('a'), approve, 'h1', HOUR)).status).toBe(
      'claimed',
    )
    expect(await ledger.unsettled(record('a').owner, record('a').threadId)).toHaveLength(1)
    const key = 'run'
    const log = sqlRunLog(one, { prefix })
    const writer = await log.begin(key)
    await writer.append(['{}'])
    await writer.end()
    const read = []
    const events = await sqlRunLog(other, { prefix }).read(key, 0, new AbortController().signal)
    for await (const some of events ?? []) read.push(...some)
    expect(read).toEqual([{ n: 1, data: '{}' }])
    const channel = sqlAnswerChannel(one, { prefix, pollMs: 50 })
    const close = await channel.open(key, async () => ({ status: 'taken' }))
    const delivered = sqlAnswerChannel(other, { prefix, pollMs: 50 }).deliver(key, [])
    expect(await delivered).toEqual({ status: 'taken' })
    await close()
    await channel.close()
  })

  testHere(`T26 tables of a newer version are refused (${database.name})`, async () => {
    const { one, prefix } = await newTables(database)
    await one.query(`update ${prefix}meta set value = '99' where name = 'schema'`, [])
    await expect(ensureSchema(one, { prefix })).rejects.toThrow(/its tables are of version 99.*Update it/)
  })

  testHere(
    `without a clock of its own the ledger uses the clock of the database (${database.name})`,
    async () => {
      const { one, prefix } = await newTables(database)
      const ledger = sqlLedger(one, { prefix })
      await ledger.issue(record('a'))
      expect((await ledger.claim(record('a'), approve, 'h1', 20)).status).toBe('claimed')
      const row = await ledger.lookup(record('a'))
      const until = row?.state.phase === 'claimed' || row?.state.phase === 'interrupted' ? row : undefined
      expect(until).toBeDefined()
      while ((await ledger.lookup(record('a')))?.state.phase !== 'interrupted')
        await new Promise((resolve) => setTimeout(resolve, 5))
    },
  )

  testHere(
    `what has outlived its time leaves the table as others are written (${database.name})`,
    async () => {
      const { one, prefix } = await newTables(database)
      let now = 0
      const ledger = sqlLedger(one, { prefix, now: () => now })
      for (let index = 0; index < 40; index++)
        await ledger.issue(record(`a${index}`, { expiresAt: 1000, threadId: `thread ${index}` }))
      now = 10 * HOUR
      for (let index = 0; index < 20; index++)
        await ledger.issue(record(`b${index}`, { expiresAt: now + HOUR }))
      const [counted] = await one.query(`select count(*) as rows from ${prefix}rows`, [])
      expect(Number(counted?.rows)).toBe(20)
    },
  )

  testHere(`the audit trail is bounded, and read whole however long it is (${database.name})`, async () => {
    const { one, prefix } = await newTables(database)
    const ledger = sqlLedger(one, { prefix, maxAuditEntries: 300 })
    for (let at = 1; at <= 640; at++) {
      await ledger.audit({ at, event: 'issued', ownerHash: 'h', threadId: 't' })
    }
    const read: number[] = []
    for await (const entry of ledger.auditTrail()) read.push(entry.at)
    expect([read.length, read[0], read.at(-1)]).toEqual([300, 341, 640])
  })

  testHere(`names and texts of any kind stay as they are (${database.name})`, async () => {
    const { one, prefix } = await newTables(database)
    const ledger = sqlLedger(one, { prefix })
    const odd = {
      threadId: '\ud800\u0000"\'?$1',
      toolName: '?'.repeat(5000),
      arguments: '{"a":"\\u0000 ? $1"}',
    }
    await ledger.issue(record('a', odd))
    expect(await ledger.lookup(record('a', { threadId: '\ud801\u0000"\'?$1' }))).toBeUndefined()
    expect((await ledger.lookup(record('a', odd)))?.record).toMatchObject(odd)
  })
}

/** A connection whose statements that `isMeant` picks are lost: before they reach the database, or their reply. */
function lossy(inner: SqlConnection, what: 'statement' | 'reply', isMeant: (values: string) => boolean) {
  let lost = 0
  const connection: SqlConnection = {
    dialect: inner.dialect,
    query: async (text, values) => {
      if (lost > 0 || !isMeant(values.join(' '))) return inner.query(text, values)
      lost++
      if (what === 'reply') await inner.query(text, values)
      throw new Error('Connection terminated unexpectedly')
    },
  }
  return connection
}

const isClaim = (values: string) => values.includes('"phase":"claimed"')

for (const what of ['statement', 'reply'] as const) {
  test.each(databases.filter(({ isThere }) => isThere))(
    `a claim whose ${what} is lost with its connection is made once ($name)`,
    async (database) => {
      const { one, other, prefix } = await newTables(database)
      const ledger = sqlLedger(lossy(one, what, isClaim), { prefix })
      await ledger.issue(record('a'))
      expect((await ledger.claim(record('a'), approve, 'h1', HOUR)).status).toBe('claimed')
      expect((await sqlLedger(other, { prefix }).claim(record('a'), approve, 'h2', HOUR)).status).toBe(
        'in-progress',
      )
      expect(await ledger.complete(record('a'), 'h1', { type: 'result', content: '1' })).toMatchObject({
        status: 'recorded',
      })
    },
  )
}

const withServer = test.skipIf(url === '')

withServer(
  'a claim that the database made too late is taken back: the same yes can be given again',
  async () => {
    const pool = newPool()
    const prefix = newPrefix()
    await ensureSchema(fromPg(pool), { prefix })
    let isHeld = false
    let letGo = () => {}
    const gate = new Promise<void>((resolve) => {
      letGo = resolve
    })
    const slow: SqlConnection = {
      dialect: 'postgres',
      query: async (text, values) => {
        const rows = (await pool.query(text, [...values])).rows
        isHeld ||= isClaim(values.join(' '))
        if (isHeld) await gate
        return rows
      },
    }
    await sqlLedger(fromPg(pool), { prefix }).issue(record('a'))
    const ledger = sqlLedger(slow, { prefix, timeout: 2_000 })
    await expect(ledger.claim(record('a'), approve, 'h1', 60_000)).rejects.toMatchObject({
      code: 'ledger-unavailable',
    })
    expect(isHeld).toBe(true)
    letGo()
    const other = sqlLedger(fromPg(newPool()), { prefix })
    while ((await other.lookup(record('a')))?.state.phase !== 'issued')
      await new Promise((resolve) => setTimeout(resolve, 20))
    expect((await other.claim(record('a'), approve, 'h2', 60_000)).status).toBe('claimed')
  },
)

withServer('a revocation waits for a grant that is being written, and ends it', async () => {
  const prefix = newPrefix()
  const [pool, another] = [newPool(), newPool()]
  await ensureSchema(fromPg(pool), { prefix })
  const other = sqlLedger(fromPg(another), { prefix })
  const key = { owner: 'alice', threadId: 'thread', toolName: 'remove', scopeKey: 'key' }
  let revoked: Promise<number> | undefined
  const slow: SqlConnection = {
    dialect: 'postgres',
    query: async (text, values) => {
      if (!text.startsWith('insert') || !values.join(' ').includes('"scopeKey":"key"'))
        return fromPg(pool).query(text, values)
      const client = await pool.connect()
      await client.query('begin')
      const { rows } = await client.query(text, [...values])
      revoked = other.revoke({ owner: 'alice' })
      await Promise.race([revoked, new Promise((resolve) => setTimeout(resolve, 300))])
      await client.query('commit')
      client.release()
      return rows
    },
  }
  const ledger = sqlLedger(slow, { prefix })
  const asked = record('a', { scopes: ['once', 'session'] })
  await ledger.issue(asked)
  const claim = await ledger.claim(asked, { decision: 'approve', scope: 'session' }, 'h', HOUR)
  const revision = claim.status === 'claimed' ? claim.revision : undefined
  expect((await ledger.grant({ ...key, approved: true, revision })).status).toBe('granted')
  expect([await revoked, await ledger.findGrant(key, 'use')]).toEqual([1, undefined])
})

test.skipIf(findPostgres() === undefined)(
  'T27 PostgreSQL restarts, is read-only, has no connection left: nothing runs twice, and all works again afterwards',
  async () => {
    const own = await startPostgres(findPostgres() ?? '', { durable: true })
    const pool = newPool(own.url, 4)
    const admin = newPool(own.url, 1)
    const ledger = sqlLedger(fromPg(pool), { timeout: 1000 })
    const troubles: Record<string, () => Promise<() => Promise<unknown>>> = {
      'a restart': async () => {
        own.restart()
        return async () => {}
      },
      'read-only': async () => {
        await admin.query('alter database postgres set default_transaction_read_only = on')
        await admin.query(END_OTHERS)
        return async () => {
          await admin.query('set default_transaction_read_only = off')
          await admin.query('alter database postgres set default_transaction_read_only = off')
          await admin.query(END_OTHERS)
        }
      },
      'no connection left': async () => {
        const clients = await Promise.all([1, 2, 3, 4].map(() => pool.connect()))
        return async () => {
          for (const client of clients) client.release()
        }
      },
    }
    onTestFinished(async () => {
      await Promise.all([pool.end(), admin.end()])
      await own.stop()
    })
    await ensureSchema(fromPg(pool))
    for (const [name, begin] of Object.entries(troubles)) {
      await ledger.issue(record(name))
      const statuses: string[] = []
      const claim = async (holder: string) => {
        const { status } = await ledger.claim(record(name), approve, holder, HOUR)
        statuses.push(status)
      }
      const end = await begin()
      const during = await Promise.allSettled([1, 2, 3, 4, 5, 6].map((index) => claim(`during ${index}`)))
      for (const one of during)
        if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 'ledger-unavailable' })
      await end()
      while (
        !(await claim('after').then(
          () => true,
          () => false,
        ))
      )
        await new Promise((resolve) => setTimeout(resolve, 20))
      expect([name, statuses.filter((status) => status === 'claimed')]).toEqual([name, ['claimed']])
    }
  },
)

/** A setting of a database holds for the connections that are made from then on. */
const END_OTHERS = `select pg_terminate_backend(pid) from pg_stat_activity
  where pid <> pg_backend_pid() and backend_type = 'client backend'`

test('without its tables the ledger says how to make them', async () => {
  const database = databases.find(({ name }) => /PG|Postgre/.test(name)) as TestDatabase
  const [one] = await database.connect()
  await expect(sqlLedger(one, { prefix: newPrefix() }).issue(record('a'))).rejects.toThrow(/ensureSchema/)
})

test.each([undefined, {}, { dialect: 'mysql', query: () => [] }])(
  'what is no connection is refused (%s)',
  (wrong) => {
    // @ts-expect-error it is no connection
    expect(() => sqlLedger(wrong)).toThrow(/must be a connection/)
  },
)

test.each(['', 'a b', 'a;drop', 'x'.repeat(60)])('a prefix that is no name is refused (%s)', (prefix) => {
  expect(() => schemaStatements('postgres', { prefix })).toThrow(/prefix/)
})

test.each(['postgres', 'sqlite'] as const)(
  'schema/%s.sql has the statements of ensureSchema',
  async (dialect) => {
    const file = join(import.meta.dirname, '../schema', `${dialect}.sql`)
    const text = `${schemaStatements(dialect).join(';\n\n')};\n`
    expect(await readFile(file, 'utf8')).toBe(text)
  },
)
