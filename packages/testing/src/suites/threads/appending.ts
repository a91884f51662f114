import { atOnce, count, type Expect } from '../ledger/bench.js'
import { key, type ThreadSpec, text } from './bench.js'

export function appending(spec: ThreadSpec, expect: Expect): void {
  spec(
    'T3 an append raises the version by one, and says when the thread was used last',
    async ({ store, another, now, advance }) => {
      const begun = now()
      expect(
        await store.append(key, { version: 0, title: 'Hello', messages: [text('m1')], head: 'm1' }),
      ).toEqual({
        status: 'appended',
        version: 1,
      })
      advance(1000)
      expect(await another.append(key, { version: 1, messages: [text('m2', 'm1')], head: 'm2' })).toEqual({
        status: 'appended',
        version: 2,
      })
      expect(await store.load(key)).toEqual({
        ...{ threadId: 'thread', version: 2, title: 'Hello', head: 'm2', usage: [] },
        ...{ messages: [text('m1'), text('m2', 'm1')], createdAt: begun, updatedAt: begun + 1000 },
      })
    },
  )

  spec(
    'T3 an append with a stale version is refused and changes nothing',
    async ({ store, another, say, advance }) => {
      await say('m1')
      await say('m2')
      const before = await store.load(key)
      advance(1000)
      for (const version of [0, 1, 3, 99]) {
        const change = { version, messages: [text('m1', null, 'new'), text('m9')], head: 'm9', title: 'New' }
        const usage = { runId: 'r', usage: [] }
        expect(await another.append(key, { ...change, usage })).toEqual({ status: 'stale', version: 2 })
      }
      expect(await store.load(key)).toEqual(before)
    },
  )

  spec(
    'T3 of two concurrent appends one wins, and the other is told the current version',
    async ({ store, another, idsAfter }) => {
      for (let version = 0; version < 10; version++) {
        const ids = [`${version} here`, `${version} there`]
        const results = await atOnce(2, (index) => {
          const id = ids[index] ?? ''
          return [store, another][index]?.append(key, {
            version,
            messages: [text(id), text(`${id} too`)],
            head: id,
          })
        })
        expect(
          results.toSorted((one, other) => ((one?.status ?? '') < (other?.status ?? '') ? -1 : 1)),
        ).toEqual([
          { status: 'appended', version: version + 1 },
          { status: 'stale', version: version + 1 },
        ])
        const winner = ids[results.findIndex((result) => result?.status === 'appended')]
        expect(await idsAfter(version)).toEqual([winner, `${winner} too`])
      }
    },
  )

  spec(
    'T3 of twenty concurrent appends to a new thread exactly one makes it',
    async ({ store, another, idsAfter }) => {
      const results = await atOnce(20, (index) =>
        [store, another][index % 2]?.append(key, { version: 0, messages: [text(`m${index}`)] }),
      )
      expect(count(results)).toEqual({ appended: 1, stale: 19 })
      expect(await idsAfter(0)).toEqual([`m${results.findIndex((result) => result?.status === 'appended')}`])
    },
  )

  spec(
    'T3 a change that is sent again after a lost reply is answered as the first time, and stored once',
    async ({ store, another, say, idsAfter }) => {
      await say('m1')
      const change = { version: 1, messages: [text('m2', 'm1')], head: 'm2' }
      const appended = { status: 'appended', version: 2 }
      expect(await store.append(key, change)).toEqual(appended)
      expect(await another.append(key, change)).toEqual(appended)
      expect(await store.append(key, { ...change, head: 'm1' })).toEqual({ status: 'stale', version: 2 })
      expect(await idsAfter(0)).toEqual(['m1', 'm2'])
      await store.append(key, { version: 2, head: 'm1' })
      expect(await another.append(key, change)).toEqual({ status: 'stale', version: 3 })
    },
  )

  spec(
    'messages are replaced by their id, and the last of two with one id counts',
    async ({ store, another }) => {
      await store.append(key, { version: 0, messages: [text('a'), text('b'), text('a', 'b', 'newer')] })
      await store.append(key, { version: 1, messages: [text('c'), text('b', 'c', 'newer')] })
      expect((await another.load(key))?.messages).toEqual([
        text('a', 'b', 'newer'),
        text('b', 'c', 'newer'),
        text('c'),
      ])
    },
  )

  spec(
    'T9 two messages may have one parent: the head says which branch is shown, and moves without changing either',
    async ({ store, another, idsAfter }) => {
      const first = [text('u1'), text('a1', 'u1'), text('u2', 'a1'), text('a2', 'u2')]
      await store.append(key, { version: 0, messages: first, head: 'a2' })
      const edited = [text('u2b', 'a1'), text('a2b', 'u2b')]
      // The results of calls that were open on the branch that is left are stored with the move.
      const closed = text('r2', 'a2')
      await another.append(key, { version: 1, messages: [closed, ...edited], head: 'a2b' })
      const all = [...first, closed, ...edited]
      const stored = async () => {
        const { version, head, messages } = (await store.load(key)) ?? {}
        return { version, head, messages }
      }
      expect(await stored()).toEqual({ version: 2, head: 'a2b', messages: all })
      await store.append(key, { version: 2, head: 'r2' })
      expect(await stored()).toEqual({ version: 3, head: 'r2', messages: all })
      expect(await idsAfter(2)).toEqual([])
      await another.append(key, { version: 3, head: null })
      expect(await stored()).toEqual({ version: 4, head: null, messages: all })
    },
  )

  spec('what a change does not name stays as it is', async ({ store, another }) => {
    await store.append(key, { version: 0, messages: [text('a')], head: 'a', title: 'Title' })
    await store.append(key, { version: 1 })
    const thread = await another.load(key)
    expect([thread?.version, thread?.head, thread?.title, thread?.messages]).toEqual([
      2,
      'a',
      'Title',
      [text('a')],
    ])
  })

  spec('one change may have more messages than a statement has parameters', async ({ store, another }) => {
    const messages = Array.from({ length: 1500 }, (_, n) => text(`m${n}`, n === 0 ? null : `m${n - 1}`))
    await store.append(key, { version: 0, messages, head: 'm1499' })
    const replaced = messages.map(({ id, parent }) => text(id, parent, 'replaced'))
    await store.append(key, { version: 1, messages: replaced.toReversed() })
    expect((await another.load(key))?.messages).toEqual(replaced)
  })

  spec('what is no JSON text, or no key, is refused', async ({ store, idsAfter }) => {
    const codeOf = async (work: () => Promise<unknown>) => {
      const error: unknown = await work().catch((thrown: unknown) => thrown)
      return typeof error === 'object' && error !== null && 'code' in error ? error.code : 'resolved'
    }
    const append = (message: string) =>
      store.append(key, { version: 0, messages: [{ ...text('m'), message }] })
    const wrong = JSON.parse('{"owner":"alice","threadId":7}')
    const codes = [
      await codeOf(() => append('"\u0000"')),
      await codeOf(() => append('"\ud800"')),
      await codeOf(() => store.load(wrong)),
      await codeOf(() => store.load({ ...key, owner: wrong })),
      await codeOf(() => store.load(key, -1)),
      await codeOf(() => store.append(key, { version: 0, title: 'x'.repeat(1025) })),
      await codeOf(() => store.rename(key, 'x'.repeat(1025))),
    ]
    expect(codes).toEqual(codes.map(() => 'invalid-argument'))
    expect(await idsAfter(0)).toEqual(undefined)
  })
}
