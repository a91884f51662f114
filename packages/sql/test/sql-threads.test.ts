import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  ensureSchema,
  type SqlConnection,
  type SqlThreadsOptions,
  sqlLedger,
  sqlRunLog,
  sqlThreads,
} from '@countersign/sql'
import { describeThreads } from '@countersign/testing/suites'
import { expect, test } from 'vitest'
import { newPrefix, type TestDatabase, useDatabases } from './databases.js'

const { databases, newTables } = await useDatabases('threads in PostgreSQL')

const key = { owner: 'alice', threadId: 'thread' }
const r1 = { runId: 'r1', holder: 'h1' }
const message = (id: string) => ({ id, parent: null, message: JSON.stringify({ id }) })

async function stores(database: TestDatabase, options: SqlThreadsOptions = {}) {
  const { one, other, prefix } = await newTables(database)
  const store = sqlThreads(one, { prefix, ...options })
  return { store, another: sqlThreads(other, { prefix, ...options }), one, other, prefix }
}

async function rowsIn(connection: SqlConnection, prefix: string): Promise<number> {
  const [row] = await connection.query(`select count(*) as rows from ${prefix}threads`, [])
  return Number(row?.rows)
}

/** A connection that loses the first write: before it reaches the database, or its reply. */
function lossy(inner: SqlConnection, what: 'statement' | 'reply'): SqlConnection {
  let isLost = false
  return {
    dialect: inner.dialect,
    query: async (text, values) => {
      if (isLost || text.startsWith('select')) return inner.query(text, values)
      isLost = true
      if (what === 'reply') await inner.query(text, values)
      throw new Error('Connection terminated unexpectedly')
    },
  }
}

for (const database of databases) {
  const testHere = test.skipIf(!database.isThere)
  describeThreads(`sqlThreads on ${database.name}`, (options) => stores(database, options), {
    test: testHere,
    expect,
  })

  for (const what of ['statement', 'reply'] as const) {
    testHere(
      `T3 a change whose ${what} is lost with its connection is made once (${database.name})`,
      async () => {
        const { store, another, one, prefix } = await stores(database)
        const losing = () => sqlThreads(lossy(one, what), { prefix })
        const held = { status: 'held', version: 0, interrupted: [] }
        expect(await losing().hold(key, r1, 60_000)).toEqual(held)
        const change = { version: 0, run: r1, messages: [message('m1')], release: true }
        expect(await losing().append(key, change)).toEqual({ status: 'appended', version: 1 })
        expect(await losing().rename(key, 'Title')).toBe(true)
        expect(await another.load(key)).toMatchObject({
          version: 1,
          title: 'Title',
          messages: [message('m1')],
        })
        expect(await losing().remove(key)).toBe(true)
        expect([await store.load(key), await rowsIn(one, prefix)]).toEqual([undefined, 0])
      },
    )
  }

  testHere(
    `T3 a change that was reported as failed and was made even so is told as appended when it is sent again (${database.name})`,
    async () => {
      const { another, one, prefix } = await stores(database)
      const change = { version: 0, messages: [message('m1')] }
      let isBroken = false
      const breaking: SqlConnection = {
        dialect: one.dialect,
        query: async (text, values) => {
          const rows = isBroken ? [] : await one.query(text, values)
          isBroken ||= !text.startsWith('select')
          if (isBroken) throw new Error('Connection terminated unexpectedly')
          return rows
        },
      }
      const failing = sqlThreads(breaking, { prefix })
      await expect(failing.append(key, change)).rejects.toMatchObject({ code: 'ledger-unavailable' })
      expect(await another.append(key, change)).toEqual({ status: 'appended', version: 1 })
      expect(await another.append(key, change)).toEqual({ status: 'appended', version: 1 })
      expect((await another.load(key))?.messages).toEqual([message('m1')])
    },
  )

  for (const reason of [
    'D1_ERROR: string or blob too big: SQLITE_TOOBIG',
    'database or disk is full',
    'could not extend file "base/1/2": No space left on device',
  ])
    testHere(
      `a change that the database has no room for (${reason}) is refused as full, and nothing is stored (${database.name})`,
      async () => {
        const { store, one, prefix } = await stores(database)
        const small: SqlConnection = {
          dialect: one.dialect,
          query: async (text, values) => {
            if (values.some((value) => String(value).length > 10_000)) throw new Error(reason)
            return one.query(text, values)
          },
        }
        const limited = sqlThreads(small, { prefix })
        const large = { id: 'm1', parent: null, message: JSON.stringify('x'.repeat(10_000)) }
        expect(await limited.append(key, { version: 0, messages: [large] })).toEqual({
          status: 'full',
          limit: 'store',
        })
        expect(await store.load(key)).toBeUndefined()
        expect((await limited.append(key, { version: 0, messages: [message('m1')] })).status).toBe('appended')
      },
    )

  testHere(
    `an append costs two statements and reads one row, however long the thread (${database.name})`,
    async () => {
      const { store, one, prefix } = await stores(database)
      const messages = Array.from({ length: 2000 }, (_, n) => message(`m${n}`))
      await store.append(key, { version: 0, messages })
      if (one.dialect === 'postgres') await one.query(`analyze ${prefix}threads`, [])
      const replies: number[] = []
      const plans: string[] = []
      const counting: SqlConnection = {
        dialect: one.dialect,
        query: async (text, values) => {
          const explain = one.dialect === 'postgres' ? 'explain' : 'explain query plan'
          // libSQL's client leaves an explained statement open, and with it what its connection has written
          const isExplained = database.name !== 'libSQL'
          if (isExplained) plans.push(JSON.stringify(await one.query(`${explain} ${text}`, values)))
          const rows = await one.query(text, values)
          replies.push(rows.length)
          return rows
        },
      }
      const counted = sqlThreads(counting, { prefix })
      expect((await counted.append(key, { version: 1, messages: [message('more')] })).status).toBe('appended')
      expect(replies.length).toBe(2)
      // the header and the message that is looked for, then what was written
      expect(replies[0]).toBe(2)
      expect(replies[1]).toBeLessThanOrEqual(2)
      replies.length = 0
      expect((await counted.load(key, 1))?.messages).toEqual([message('more')])
      expect(replies).toEqual([2])
      // all rows are found by an index
      expect(plans.filter((plan) => /Seq Scan|SCAN \w*threads/.test(plan))).toEqual([])
    },
  )

  testHere(
    `T5 nothing stays in the table of a thread that is removed while others append (${database.name})`,
    async () => {
      const { store, another, one, prefix } = await stores(database)
      for (let round = 0; round < 10; round++) {
        await store.append(key, { version: 0, messages: [message('first')] })
        const appends = Array.from({ length: 5 }, (_, n) =>
          [store, another][n % 2]?.append(key, { version: 1, messages: [message(`${round} ${n}`)] }),
        )
        const [removed] = await Promise.all([another.remove(key), ...appends])
        expect(removed).toBe(true)
        expect([await store.load(key), await rowsIn(one, prefix)]).toEqual([undefined, 0])
      }
    },
  )

  testHere(
    `without a clock of its own the store uses the clock of the database (${database.name})`,
    async () => {
      const { store, another } = await stores(database)
      await store.append(key, { version: 0 })
      const { createdAt = 0, updatedAt } = (await another.load(key)) ?? {}
      expect([createdAt === updatedAt, Number.isInteger(createdAt)]).toEqual([true, true])
      expect(Math.abs(createdAt - Date.now()) < 60 * 60 * 1000).toBe(true)
      await store.hold(key, r1, 1)
      await store.hold({ ...key, threadId: 'long' }, r1, 60 * 60 * 1000)
      while ((await another.abandoned(10)).length === 0)
        await new Promise((resolve) => setTimeout(resolve, 5))
      expect(await another.abandoned(10)).toEqual([{ ...key, runId: 'r1' }])
      expect(await another.hold(key, { runId: 'r2', holder: 'h2' }, 60_000)).toMatchObject({
        status: 'held',
        interrupted: [{ runId: 'r1' }],
      })
    },
  )

  testHere(
    `T26 tables from before there were threads get theirs, and keep their data (${database.name})`,
    async () => {
      const [one, other] = await database.connect()
      const prefix = newPrefix()
      const file = join(import.meta.dirname, 'schema-before-threads', `${one.dialect}.sql`)
      const statements = (await readFile(file, 'utf8')).replaceAll('countersign_', prefix).split(';\n')
      for (const statement of statements) if (statement.trim() !== '') await one.query(statement, [])
      const ids = {
        ...key,
        approvalId: 'a',
        runId: 'run',
        toolCallId: 'call',
        toolName: 'remove',
        token: 't',
      }
      const terms = { arguments: '{}', scopes: ['once'], edits: true, idempotent: false } as const
      const record = { ...ids, ...terms, issuedAt: 0, expiresAt: Date.now() + 60 * 60 * 1000 }
      await sqlLedger(one, { prefix }).issue(record)
      await (await sqlRunLog(one, { prefix }).begin('run')).append(['a'])
      await Promise.all([ensureSchema(one, { prefix }), ensureSchema(other, { prefix })])
      expect((await sqlLedger(other, { prefix }).lookup(record))?.record).toEqual(record)
      expect(await sqlRunLog(other, { prefix }).read('run', 0, new AbortController().signal)).toBeDefined()
      const threads = sqlThreads(other, { prefix })
      expect((await threads.append(key, { version: 0, messages: [message('m1')] })).status).toBe('appended')
      // a server of the earlier version still starts beside this one
      const [meta] = await one.query(`select value from ${prefix}meta where name = 'schema'`, [])
      expect(meta?.value).toBe('1')
    },
  )

  testHere(`without its table the store says how to make it (${database.name})`, async () => {
    const [one] = await database.connect()
    const store = sqlThreads(one, { prefix: newPrefix() })
    await expect(store.load(key)).rejects.toThrow(/ensureSchema/)
    await expect(store.append(key, { version: 0 })).rejects.toMatchObject({ code: 'ledger-unavailable' })
  })
}
