import type { ThreadStore } from '@countersign/server'
import type { Expect } from '../ledger/bench.js'
import { attempt, key, LEASE, type ThreadSpec, text } from './bench.js'

const of = (threadId: string) => ({ owner: 'alice', threadId })

export function listing(spec: ThreadSpec, expect: Expect): void {
  spec('T5 threads are listed by last activity, newest first, without their messages', async (bench) => {
    const { store, another, say, advance, now } = bench
    const begun = now()
    for (const id of ['a', 'b', 'c']) {
      await say('m1', of(id))
      advance(1000)
    }
    await say('m2', of('a'))
    await say('m1', { owner: 'bob', threadId: 'other' })
    await store.hold(of('b'), attempt('r1'), LEASE)
    expect(await another.list('alice', { limit: 10 })).toEqual({
      threads: [
        { threadId: 'a', version: 2, createdAt: begun, updatedAt: begun + 3000 },
        { threadId: 'c', version: 1, createdAt: begun + 2000, updatedAt: begun + 2000 },
        {
          ...{ threadId: 'b', version: 1, createdAt: begun + 1000, updatedAt: begun + 1000 },
          run: { runId: 'r1', lapsed: false },
        },
      ],
    })
  })

  spec(
    'T5 pages have every thread once, also where all were used in the same millisecond',
    async ({ another, say, advance }) => {
      const ids = Array.from({ length: 25 }, (_, index) => `t${index}`)
      for (const [index, id] of ids.entries()) {
        if (index === 12) advance(1)
        await say('m1', of(id))
      }
      for (const limit of [1, 3, 7, 13, 25, 26]) {
        const pages = await allPages(another, limit)
        expect(pages.flat().toSorted()).toEqual(ids.toSorted())
        expect(pages.flat().slice(0, 13).toSorted()).toEqual(ids.slice(12).toSorted())
        expect(pages.length).toEqual(Math.ceil(25 / limit))
      }
    },
  )

  spec(
    'T5 nothing is skipped or repeated while threads are added, used and removed between two pages',
    async (bench) => {
      const { store, another, say, advance } = bench
      for (let index = 0; index < 9; index++) {
        await say('m1', of(`t${index}`))
        advance(1)
      }
      const between = async (page: number) => {
        await say('m1', of(`new ${page}`))
        // seen before, and not seen yet
        if (page === 1) await say('m2', of('t8'))
        if (page === 1) await say('m2', of('t3'))
        if (page === 1) await store.remove(of('t6'))
        advance(1)
      }
      expect(await allPages(another, 3, between)).toEqual([
        ['t8', 't7', 't6'],
        ['t5', 't4', 't2'],
        ['t1', 't0'],
      ])
      const fresh = await allPages(another, 4)
      expect(fresh.flat().slice(0, 4).toSorted()).toEqual(['new 1', 'new 2', 't3', 't8'])
      expect(fresh.flat().slice(4)).toEqual(['t7', 't5', 't4', 't2', 't1', 't0'])
    },
  )

  spec('T5 a clock that was set back repeats no thread', async ({ another, say, advance }) => {
    for (const id of ['a', 'b', 'c', 'd']) {
      await say('m1', of(id))
      advance(1000)
    }
    const between = async (page: number) => {
      advance(-10_000)
      if (page === 1) await say('m2', of('d'))
    }
    expect((await allPages(another, 2, between)).flat()).toEqual(['d', 'c', 'b', 'a'])
  })

  spec(
    'T5 rename changes the title, and neither the version nor the order',
    async ({ store, another, say, advance }) => {
      await say('m1', of('a'))
      advance(1)
      await say('m1', of('b'))
      advance(1)
      const before = await store.load(of('a'))
      expect(await store.rename(of('a'), 'Zo\u00eb \ud800 \u0000')).toEqual(true)
      expect(await another.load(of('a'))).toEqual({ ...before, title: 'Zo\u00eb \ud800 \u0000' })
      const { threads } = await another.list('alice', { limit: 10 })
      expect(threads.map(({ threadId, title }) => [threadId, title])).toEqual([
        ['b', undefined],
        ['a', 'Zo\u00eb \ud800 \u0000'],
      ])
      expect((await another.append(of('a'), { version: 1 })).status).toEqual('appended')
      expect((await store.load(of('a')))?.title).toEqual('Zo\u00eb \ud800 \u0000')
    },
  )

  spec(
    'T5 remove leaves nothing: the thread begins anew at version 1',
    async ({ store, another, say, idsAfter }) => {
      await say('m1')
      await say('m2')
      await store.append(key, { version: 2, usage: { runId: 'r1', usage: [] }, title: 'Title' })
      expect(await another.remove(key)).toEqual(true)
      expect(await store.remove(key)).toEqual(false)
      expect([await store.load(key), await store.list('alice', { limit: 10 })]).toEqual([
        undefined,
        { threads: [] },
      ])
      expect(await store.append(key, { version: 3, head: 'm2' })).toEqual({ status: 'stale', version: 0 })
      expect(await say('m3')).toEqual(1)
      expect(await idsAfter(0)).toEqual(['m3'])
      const anew = await another.load(key)
      expect([anew?.title, anew?.usage]).toEqual([undefined, []])
    },
  )

  spec(
    'T5 a run whose thread is removed has lost it, and brings nothing back',
    async ({ store, another, say, advance }) => {
      await say('m1')
      await store.hold(key, attempt('r1'), LEASE)
      expect(await another.remove(key)).toEqual(true)
      const change = { version: 1, run: attempt('r1'), messages: [text('m2')] }
      expect(await store.append(key, change)).toEqual({ status: 'lost' })
      expect(await store.hold(key, attempt('r1'), LEASE, { renew: true })).toEqual({ status: 'lost' })
      await store.release(key, attempt('r1'))
      advance(LEASE)
      expect([await store.load(key), await store.abandoned(10)]).toEqual([undefined, []])
      const held = { status: 'held', version: 0, interrupted: [] }
      expect(await another.hold(key, attempt('r2'), LEASE)).toEqual(held)
    },
  )

  spec(
    'T5 a page has a size, and a cursor comes from an earlier page of any owner',
    async ({ store, say }) => {
      await say('m1', of('a'))
      await say('m1', of('b'))
      const { cursor } = await store.list('alice', { limit: 1 })
      expect(await store.list('bob', { limit: 1, cursor })).toEqual({ threads: [] })
      for (const page of [
        { limit: 0 },
        { limit: 1.5 },
        { limit: 1001 },
        { limit: 1, cursor: '' },
        { limit: 1, cursor: `${cursor}'` },
      ]) {
        const error = await store.list('alice', page).catch((thrown: unknown) => thrown)
        expect(typeof error === 'object' && error !== null && 'code' in error && error.code).toEqual(
          'invalid-argument',
        )
      }
    },
  )
}

/** The thread ids of Alice's pages; `between` runs before every page but the first, which is number 0. */
async function allPages(
  store: ThreadStore,
  limit: number,
  between?: (page: number) => Promise<void>,
): Promise<string[][]> {
  const pages: string[][] = []
  let cursor: string | undefined
  do {
    if (pages.length > 0) await between?.(pages.length)
    const page = await store.list('alice', { limit, cursor })
    pages.push(page.threads.map(({ threadId }) => threadId))
    cursor = page.cursor
  } while (cursor !== undefined)
  return pages
}
