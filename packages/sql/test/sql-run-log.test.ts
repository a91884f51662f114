import { type SqlConnection, type SqlRunLogOptions, sqlRunLog } from '@countersign/sql'
import { describeRunLog } from '@countersign/testing/suites'
import { expect, test } from 'vitest'
import { type TestDatabase, useDatabases } from './databases.js'

const { databases, newTables } = await useDatabases('the run log in PostgreSQL')

async function logs(database: TestDatabase, options: SqlRunLogOptions = {}) {
  const { one, other, prefix } = await newTables(database)
  const statements: string[] = []
  const counting: SqlConnection = {
    ...one,
    query: (text, values) => {
      statements.push(text)
      return one.query(text, values)
    },
  }
  const log = sqlRunLog(counting, { prefix, ...options })
  return { log, another: sqlRunLog(other, { prefix }), one, prefix, statements }
}

const never = new AbortController().signal

for (const database of databases) {
  const testHere = test.skipIf(!database.isThere)
  describeRunLog(`T24 sqlRunLog on ${database.name}`, () => logs(database), { test: testHere, expect })

  testHere(
    `T25 events that are written together are one statement, however many (${database.name})`,
    async () => {
      const { log, statements } = await logs(database)
      const writer = await log.begin('run')
      statements.length = 0
      await writer.append(Array.from({ length: 2000 }, (_, n) => `{"delta":"${n}"}`))
      expect(statements.length).toBe(1)
      const reading = await log.read('run', 1990, never)
      const { value } = (await reading?.[Symbol.asyncIterator]().next()) ?? {}
      expect(value?.map(({ n }: { n: number }) => n)).toEqual([
        1991, 1992, 1993, 1994, 1995, 1996, 1997, 1998, 1999, 2000,
      ])
      await writer.end()
    },
  )

  testHere(
    `a run that says more than is kept is dropped whole, and its readers end (${database.name})`,
    async () => {
      const { log, another } = await logs(database, { maxRunSize: 100 })
      const writer = await log.begin('run')
      await writer.append(['a'.repeat(60)])
      const reading = await another.read('run', 1, never)
      const read: unknown[] = []
      const ended = (async () => {
        for await (const batch of reading ?? []) read.push(...batch)
      })()
      await writer.append(['b'.repeat(60)])
      await writer.append(['c'])
      await ended
      expect(read).toEqual([])
      expect(await another.read('run', 0, never)).toBeUndefined()
    },
  )

  testHere(
    `runs past their time are forgotten, and leave nothing in the tables (${database.name})`,
    async () => {
      const { log, one, prefix } = await logs(database, { keepFor: 20, lease: 20 })
      for (const name of ['ended', 'lost']) {
        const writer = await log.begin(name)
        await writer.append(['a'])
        if (name === 'ended') await writer.end()
        else await one.query(`update ${prefix}runs set writer = 'gone' where state = 'open'`, [])
      }
      for (const name of ['ended', 'lost'])
        while ((await log.read(name, 0, never)) !== undefined)
          await new Promise((resolve) => setTimeout(resolve, 10))
      for (let index = 0; index < 17; index++) await (await log.begin('next')).end()
      await new Promise((resolve) => setTimeout(resolve, 50))
      for (let index = 0; index < 17; index++) await (await log.begin('next')).end()
      const [left] = await one.query(`select count(*) as rows from ${prefix}events`, [])
      expect(Number(left?.rows)).toBe(0)
    },
  )
}

test('a run whose server says nothing any more is over for its readers with its lease, and is read without waiting until it is swept', async () => {
  const database = databases.find(({ name }) => name === "D1's interface") as TestDatabase
  const { log, another, one, prefix } = await logs(database, { lease: 60_000 })
  await (await log.begin('run')).append(['a'])
  const reading = await another.read('run', 0, never)
  const read: unknown[] = []
  const ended = (async () => {
    for await (const batch of reading ?? []) read.push(...batch)
  })()
  await one.query(`update ${prefix}runs set kept_until = 0`, [])
  await ended
  expect(read.length <= 1).toBe(true)
  expect(await another.read('run', 0, never)).toBeUndefined()
  // Recovery may still read it.
  for await (const batch of (await another.read('run', 0, never, { wait: false })) ?? [])
    expect(batch).toEqual([{ n: 1, data: 'a' }])
  for (let index = 0; index < 16; index++) await (await log.begin('next')).end()
  expect(await another.read('run', 0, never, { wait: false })).toBeUndefined()
})
