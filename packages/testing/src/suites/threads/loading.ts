import type { ThreadKey, ThreadStore } from '@countersign/server'
import { distinctTexts } from '../distinct.js'
import type { Expect } from '../ledger/bench.js'
import { attempt, key, LEASE, type ThreadSpec, text } from './bench.js'

export function loading(spec: ThreadSpec, expect: Expect): void {
  spec('T2 an unknown thread is empty, not an error', async ({ store }) => {
    expect(await everyAnswer(store, key)).toEqual(UNKNOWN)
    expect(await store.list('alice', { limit: 10 })).toEqual({ threads: [] })
  })

  spec(
    'T2 a thread of another owner is indistinguishable from an unknown one, and nothing reaches it',
    async ({ store, another, say, idsAfter }) => {
      await say('m1')
      await store.rename(key, 'Title')
      for (const owner of ['bob', null, '', 'null', 'alice\u0000']) {
        expect(await everyAnswer(another, { owner, threadId: key.threadId })).toEqual(UNKNOWN)
        expect(await another.list(owner, { limit: 10 })).toEqual({ threads: [] })
        const own = { owner, threadId: key.threadId }
        const result = await another.append(own, { version: 0, messages: [text(`of ${owner}`)] })
        expect(result).toEqual({ status: 'appended', version: 1 })
        expect(await idsAfter(0, own)).toEqual([`of ${owner}`])
        expect((await another.list(owner, { limit: 10 })).threads.length).toEqual(1)
        expect(await another.remove(own)).toEqual(true)
      }
      expect(await store.load(key)).toEqual(await another.load(key))
      expect([(await store.load(key))?.title, await idsAfter(0)]).toEqual(['Title', ['m1']])
    },
  )

  spec('T2 threads and messages keep to their own ids, whatever is in them', async ({ store, another }) => {
    const ids = ['', ...distinctTexts]
    for (const id of ids) {
      const messages = ids.map((other) => text(other, id, `${other} of ${id}`))
      await store.append(
        { owner: id, threadId: id },
        { version: 0, messages, head: id, title: id.slice(0, 1000) },
      )
    }
    for (const id of ids) {
      const thread = await another.load({ owner: id, threadId: id })
      const { threadId, head, title, messages } = thread ?? {}
      expect({ threadId, head, title, messages }).toEqual({
        ...{ threadId: id, head: id, title: id.slice(0, 1000) },
        messages: ids.map((other) => text(other, id, `${other} of ${id}`)),
      })
    }
  })

  spec(
    'T4 messages come back byte for byte, in the order in which they were added',
    async ({ store, another }) => {
      const parts = [
        { type: 'reasoning', content: 'hm', metadata: { provider: { signature: 'a/+=' } } },
        { type: 'text', content: '' },
        { type: 'tool-call', id: 'c1', name: 'remove', arguments: '{ "path" : "a" }', output: null },
        { type: 'data', name: 'weather', data: { celsius: -0.5, list: [1, [2, {}]], '': null } },
        { type: 'file', mediaType: 'image/png', data: 'iVBORw0KGgo=' },
        {
          type: 'text',
          content: 'Zo\u00eb Zoe\u0308 \u{1F600} \u0000 \ud800 \udfff \u2028 \' " \\ \n $1 ? %s {0} \\u0000',
        },
      ]
      const messages = [
        { id: 'm1', parent: null, message: JSON.stringify({ role: 'user', parts }) },
        { id: 'm2', parent: 'm1', message: JSON.stringify({ role: 'assistant', parts: parts.toReversed() }) },
        { id: 'm3', parent: 'm2', message: '""' },
        { id: 'm4', parent: 'm3', message: ' {"a" :\t1.0, "a":1e2,\r\n"\\u0041": 9007199254740993 } ' },
        { id: 'm5', parent: 'm4', message: JSON.stringify({ text: '\u{1F600}a"\\\u0001'.repeat(175_000) }) },
      ]
      for (const [version, message] of messages.entries())
        expect((await store.append(key, { version, messages: [message], head: message.id })).status).toEqual(
          'appended',
        )
      const read = (await another.load(key))?.messages ?? []
      for (const [index, message] of messages.entries()) {
        // the failure of a comparison of such texts prints them whole
        expect({ ...read[index], message: read[index]?.message === message.message }).toEqual({
          ...message,
          message: true,
        })
      }
      expect(read.length).toEqual(messages.length)
    },
  )

  spec(
    'T4 one text of 1 MiB comes back byte for byte, beside others in the same change',
    async ({ store, another }) => {
      const long = JSON.stringify({ content: 'x'.repeat(1024 * 1024) })
      const messages = [text('m1'), { id: 'm2', parent: 'm1', message: long }, text('m3', 'm2')]
      await store.append(key, { version: 0, messages, head: 'm3' })
      const read = (await another.load(key))?.messages ?? []
      expect(read.map(({ message }, index) => message === messages[index]?.message)).toEqual([
        true,
        true,
        true,
      ])
    },
  )

  spec(
    'only what was added or replaced after a version is loaded',
    async ({ store, another, say, idsAfter }) => {
      for (const id of ['m1', 'm2', 'm3']) await say(id)
      await store.append(key, {
        version: 3,
        messages: [text('m2', 'm1', 'replaced'), text('m4', 'm3')],
        head: 'm4',
      })
      expect(await idsAfter(0)).toEqual(['m1', 'm2', 'm3', 'm4'])
      expect(await idsAfter(2)).toEqual(['m2', 'm3', 'm4'])
      expect(await idsAfter(3)).toEqual(['m2', 'm4'])
      expect(await idsAfter(4)).toEqual([])
      expect(await idsAfter(99)).toEqual([])
      const unchanged = await another.load(key, 4)
      expect([unchanged?.version, unchanged?.head, unchanged?.usage]).toEqual([4, 'm4', []])
      expect((await another.load(key, 3))?.messages[0]).toEqual(text('m2', 'm1', 'replaced'))
    },
  )

  spec(
    'branches stay: what the head leaves is kept, and can be shown again',
    async ({ store, another, idsAfter }) => {
      await store.append(key, { version: 0, messages: [text('q'), text('a1', 'q')], head: 'a1' })
      await store.append(key, { version: 1, messages: [text('a2', 'q')], head: 'a2' })
      await store.append(key, { version: 2, head: null })
      expect((await another.load(key))?.head).toEqual(null)
      await store.append(key, { version: 3, head: 'a1' })
      const thread = await another.load(key)
      expect([thread?.head, thread?.version]).toEqual(['a1', 4])
      expect(thread?.messages.map(({ id, parent }) => [id, parent])).toEqual([
        ['q', null],
        ['a1', 'q'],
        ['a2', 'q'],
      ])
      expect(await idsAfter(2)).toEqual([])
    },
  )

  spec('usage is kept for each run, and the last one of a run counts', async ({ store, another }) => {
    const usage = (runId: string, inputTokens: number) => ({
      runId,
      usage: [{ inputTokens, outputTokens: 1 }],
    })
    await store.append(key, { version: 0, usage: usage('r1', 10) })
    await store.append(key, { version: 1, usage: usage('r2', 20) })
    await store.append(key, { version: 2, usage: usage('r1', 30), messages: [text('r1')] })
    expect((await another.load(key))?.usage).toEqual([usage('r1', 30), usage('r2', 20)])
    expect((await another.load(key, 2))?.usage).toEqual([usage('r1', 30)])
  })
}

/** What every method that takes a key answers, but for those that make a thread. */
async function everyAnswer(store: ThreadStore, one: ThreadKey): Promise<unknown> {
  const run = attempt('run')
  return [
    await store.load(one),
    await store.load(one, 1),
    await store.append(one, { version: 1, messages: [text('m')], head: 'm' }),
    await store.append(one, { version: 1, run, head: 'm' }),
    await store.rename(one, 'New'),
    await store.remove(one),
    await store.release(one, run),
    await store.hold(one, run, LEASE),
    await store.load(one),
    await store.rename(one, 'New'),
    await store.remove(one),
    await store.release(one, run),
  ]
}

const UNKNOWN = [
  ...[undefined, undefined, { status: 'stale', version: 0 }, { status: 'lost' }, false, false, undefined],
  ...[{ status: 'held', version: 0, interrupted: [] }, undefined, false, false, undefined],
]
