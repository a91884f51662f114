import type { Delivery } from '@countersign/server'
import { ensureSchema, fromPg, type SqlAnswerChannelOptions, sqlAnswerChannel } from '@countersign/sql'
import { describeAnswerChannel } from '@countersign/testing/suites'
import { Pool } from 'pg'
import { expect, test, vi } from 'vitest'
import { newPrefix, type TestDatabase, useDatabases } from './databases.js'

const { databases, newTables, newPool } = await useDatabases('the answer channel in PostgreSQL')

async function channels(database: TestDatabase, options: SqlAnswerChannelOptions = {}) {
  const { one, other, prefix } = await newTables(database)
  const channel = sqlAnswerChannel(one, { prefix, ...options })
  const another = sqlAnswerChannel(other, { prefix, ...options })
  const close = async () => {
    await channel.close()
    await another.close()
  }
  return { channel, another, close, one, prefix }
}

/** As the server forms it. */
const keyOf = (user: string, run = 'run') => `7:subject${user.length}:${user}1:t${run.length}:${run}`

const answer = { interruptId: 'a', status: 'resolved', payload: { approved: true } } as const

for (const database of databases) {
  const testHere = test.skipIf(!database.isThere)
  describeAnswerChannel(
    `T28 sqlAnswerChannel on ${database.name}`,
    // On a busy machine the deliveries of the suite, which all wait at once, take long.
    () => channels(database, { pollMs: 50, timeout: 60_000 }),
    { test: testHere, expect },
  )

  testHere(`a run whose server is gone is refused when its lease is over (${database.name})`, async () => {
    const { channel, another, close, one, prefix } = await channels(database)
    await channel.open('run', async () => ({ status: 'taken' }))
    await channel.close()
    await one.query(`insert into ${prefix}listening (run, listener, kept_until) values ('x', 'gone', 0)`, [])
    expect(await another.deliver('run', [answer])).toMatchObject({ status: 'refused', code: 'run-ended' })
    await close()
  })

  testHere(
    `T28 beyond 32 answers that wait, the next of the same user is refused at once (${database.name})`,
    async () => {
      const { channel, another, close } = await channels(database, { pollMs: 20 })
      let decide: (delivery: Delivery) => void = () => {}
      const decided = new Promise<Delivery>((resolve) => {
        decide = resolve
      })
      const waiting: Promise<Delivery>[] = []
      for (const run of ['one', 'two']) {
        await channel.open(keyOf('eve', run), () => decided)
        for (let count = 0; count < 16; count++) waiting.push(another.deliver(keyOf('eve', run), [answer]))
      }
      expect(await another.deliver(keyOf('eve'), [answer])).toMatchObject({ code: 'too-many-answers' })
      decide({ status: 'taken' })
      await Promise.all(waiting)
      expect(await another.deliver(keyOf('eve', 'one'), [answer])).toEqual({ status: 'taken' })
      await close()
    },
  )

  testHere(`what was delivered leaves nothing in the tables (${database.name})`, async () => {
    const { channel, another, close, one, prefix } = await channels(database, { pollMs: 50 })
    const closeRun = await channel.open('run', async () => ({ status: 'taken' }))
    expect(await another.deliver('run', [answer])).toEqual({ status: 'taken' })
    await closeRun()
    for (const table of ['listening', 'answers'])
      expect(await one.query(`select * from ${prefix}${table}`, [])).toEqual([])
    await close()
  })
}

test.each(databases.filter(({ isThere, name }) => isThere && /Postgre|PGlite/.test(name)))(
  'T28 where the database tells when there is something, an answer does not wait for the next look ($name)',
  async (database) => {
    // nobody would look for ten minutes
    const { channel, another, close } = await channels(database, { pollMs: 600_000 })
    await channel.open('run', async () => ({ status: 'taken' }))
    await new Promise((resolve) => setTimeout(resolve, 300))
    const delivered = await Promise.race([
      another.deliver('run', [answer]),
      new Promise((resolve) => setTimeout(resolve, 4000, 'not told')),
    ])
    expect(delivered).toEqual({ status: 'taken' })
    await close()
  },
)

test.each([
  ['has not stopped to listen yet', () => new Promise<void>(() => {})],
  ['cannot stop to listen', () => Promise.reject(new Error('gone'))],
])('a run that opens while the process closes its last one and %s takes answers', async (_, stop) => {
  const database = databases.find(({ name }) => name === "D1's interface")
  if (database === undefined) return
  const { one, prefix } = await newTables(database)
  let stopped = () => {}
  const isStopping = new Promise<void>((resolve) => {
    stopped = resolve
  })
  const listen = async () => () => {
    stopped()
    return stop()
  }
  const channel = sqlAnswerChannel({ ...one, listen }, { prefix })
  const closeRun = await channel.open('first', async () => ({ status: 'taken' }))
  await closeRun()
  await isStopping
  await channel.open('second', async () => ({ status: 'taken' }))
  expect(await channel.deliver('second', [answer])).toEqual({ status: 'taken' })
})

test('a process whose connection for messages was lost listens again once an answer has come without a message', async () => {
  const database = databases.find(({ name }) => name === "D1's interface")
  if (database === undefined) return
  const { one, prefix } = await newTables(database)
  const steps: string[] = []
  const listen = async () => {
    steps.push('listen')
    return async () => void steps.push('stop')
  }
  const channel = sqlAnswerChannel({ ...one, listen }, { prefix })
  const another = sqlAnswerChannel(one, { prefix })
  await channel.open('run', async () => ({ status: 'taken' }))
  await vi.waitUntil(() => steps.length > 0)
  expect(await another.deliver('run', [answer])).toEqual({ status: 'taken' })
  await vi.waitUntil(() => steps.length > 2)
  expect(steps).toEqual(['listen', 'stop', 'listen'])
  await channel.close()
})

test.skipIf(!databases.some(({ name, isThere }) => isThere && name.startsWith('PostgreSQL')))(
  'a pool of one connection is left to the queries: an answer is found by polling',
  async () => {
    const connection = fromPg(newPool(undefined, 1))
    const prefix = newPrefix()
    await ensureSchema(connection, { prefix })
    const channel = sqlAnswerChannel(connection, { prefix, pollMs: 50 })
    await channel.open('run', async () => ({ status: 'taken' }))
    expect(await channel.deliver('run', [answer])).toEqual({ status: 'taken' })
    await channel.close()
  },
)

test.skipIf(!databases.some(({ name, isThere }) => isThere && name.startsWith('PostgreSQL')))(
  'a LISTEN that fails gives its connection of the pool back: a network that breaks for a while does not use them all up',
  async () => {
    const pool = newPool(undefined, 2)
    const { listen } = fromPg(pool)
    await expect(listen?.('no name: "', () => {})).rejects.toThrow()
    expect(pool.totalCount - pool.idleCount).toBe(0)
  },
)

test('an idle connection of a pool that breaks does not end the process, and listeners of the application are told', () => {
  const pool = new Pool()
  fromPg(pool)
  fromPg(pool)
  expect(pool.listenerCount('error')).toBe(1)
  const told: Error[] = []
  pool.on('error', (error) => told.push(error))
  const error = new Error('Connection terminated unexpectedly')
  pool.emit('error', error, undefined)
  expect(told).toEqual([error])
})
