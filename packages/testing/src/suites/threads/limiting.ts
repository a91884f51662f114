import type { Expect } from '../ledger/bench.js'
import { attempt, key, LEASE, type ThreadSpec, text } from './bench.js'

const full = (limit: string, max: number) => ({ status: 'full', limit, max })

export function limiting(spec: ThreadSpec, expect: Expect): void {
  spec(
    'more messages than maxMessages are refused, and nothing of the change is stored',
    async ({ store, say, idsAfter }) => {
      await say('m1')
      await say('m2')
      const tooMany = [text('m1', null, 'new'), text('m3'), text('m4')]
      expect(await store.append(key, { version: 2, messages: tooMany, title: 'New' })).toEqual(
        full('maxMessages', 3),
      )
      expect([(await store.load(key))?.title, await idsAfter(2)]).toEqual([undefined, []])
      const fitting = [text('m1', null, 'new'), text('m3')]
      expect((await store.append(key, { version: 2, messages: fitting })).status).toEqual('appended')
      expect((await store.append(key, { version: 3, messages: [text('m3', 'm2', 'new')] })).status).toEqual(
        'appended',
      )
    },
    { maxMessages: 3 },
  )

  spec(
    'a change is refused if there is no room for its messages and the spare ones, which take no room later',
    async ({ store, idsAfter }) => {
      const change = { version: 0, messages: [text('m1')] }
      expect(await store.append(key, { ...change, spare: 3 })).toEqual(full('maxMessages', 3))
      expect(await store.load(key)).toEqual(undefined)
      expect((await store.append(key, { ...change, spare: 2 })).status).toEqual('appended')
      const results = { version: 1, messages: [text('m1', null, 'new'), text('m2'), text('m3')] }
      expect(await store.append(key, { ...results, spare: 1 })).toEqual(full('maxMessages', 3))
      expect((await store.append(key, results)).status).toEqual('appended')
      expect(await store.append(key, { version: 2, messages: [text('m3')], spare: 1 })).toEqual(
        full('maxMessages', 3),
      )
      expect(await idsAfter(0)).toEqual(['m1', 'm2', 'm3'])
    },
    { maxMessages: 3 },
  )

  spec(
    'a change is refused if there is no room for its bytes and the spare ones, which later changes may take',
    async ({ store }) => {
      const change = { version: 0, messages: [text('m1', null, 'x'.repeat(300))] }
      expect(await store.append(key, { ...change, spareBytes: 700 })).toEqual(full('maxThreadBytes', 1000))
      expect(await store.load(key)).toEqual(undefined)
      expect((await store.append(key, { ...change, spareBytes: 600 })).status).toEqual('appended')
      expect(await store.append(key, { version: 1, spareBytes: 700 })).toEqual(full('maxThreadBytes', 1000))
      const result = { version: 1, messages: [text('m2', null, 'x'.repeat(500))] }
      expect((await store.append(key, result)).status).toEqual('appended')
    },
    { maxThreadBytes: 1000 },
  )

  spec(
    'a message of more than maxMessageBytes is refused, counted in bytes of UTF-8',
    async ({ store }) => {
      const append = async (content: string) =>
        store.append(key, { version: 0, messages: [text('m', null, content)] })
      expect(await append('\u{1F600}'.repeat(250))).toEqual(full('maxMessageBytes', 1000))
      expect((await append('\u{1F600}'.repeat(200))).status).toEqual('appended')
    },
    { maxMessageBytes: 1000 },
  )

  spec(
    'a thread does not grow beyond maxThreadBytes, also by messages that are replaced or by usage',
    async ({ store }) => {
      const long = (id: string, length: number) => text(id, null, 'x'.repeat(length))
      expect(
        (await store.append(key, { version: 0, messages: [long('a', 400), long('b', 300)] })).status,
      ).toEqual('appended')
      expect(await store.append(key, { version: 1, messages: [long('b', 600)] })).toEqual(
        full('maxThreadBytes', 1000),
      )
      const usage = { runId: 'r'.repeat(300), usage: [] }
      expect(await store.append(key, { version: 1, usage })).toEqual(full('maxThreadBytes', 1000))
      expect(
        (await store.append(key, { version: 1, messages: [long('a', 10), long('b', 600)] })).status,
      ).toEqual('appended')
      expect((await store.append(key, { version: 2, head: 'b', title: 'New' })).status).toEqual('appended')
    },
    { maxThreadBytes: 1000 },
  )

  spec(
    'one owner has at most maxThreadsPerOwner threads; other owners have theirs',
    async ({ store, another, say }) => {
      const of = (threadId: string, owner = 'alice') => ({ owner, threadId })
      await say('m1', of('a'))
      await say('m1', of('b'))
      expect(await another.append(of('c'), { version: 0 })).toEqual(full('maxThreadsPerOwner', 2))
      expect(await another.hold(of('c'), attempt('r1'), LEASE)).toEqual(full('maxThreadsPerOwner', 2))
      expect((await another.append(of('a'), { version: 1 })).status).toEqual('appended')
      expect((await another.hold(of('a'), attempt('r1'), LEASE)).status).toEqual('held')
      expect((await another.append(of('c', 'bob'), { version: 0 })).status).toEqual('appended')
      await store.remove(of('b'))
      expect((await another.append(of('c'), { version: 0 })).status).toEqual('appended')
    },
    { maxThreadsPerOwner: 2 },
  )
}
