import { atOnce, count, type Expect } from '../ledger/bench.js'
import { attempt, key, LEASE, type ThreadSpec, text } from './bench.js'

const r1 = attempt('r1')
const r2 = attempt('r2')

export function holding(spec: ThreadSpec, expect: Expect): void {
  spec(
    'of twenty runs at once one holds the thread, and the others learn which',
    async ({ store, another }) => {
      const results = await atOnce(20, (index) =>
        [store, another][index % 2]?.hold(key, attempt(`r${index}`), LEASE),
      )
      expect(count(results)).toEqual({ held: 1, busy: 19 })
      const runId = `r${results.findIndex((result) => result?.status === 'held')}`
      expect(results.filter((result) => result?.status === 'busy')).toEqual(
        Array.from({ length: 19 }, () => ({ status: 'busy', runId })),
      )
    },
  )

  spec(
    'of twenty attempts at the same run one holds the thread: the others can join it',
    async ({ store, another }) => {
      const results = await atOnce(20, (index) =>
        [store, another][index % 2]?.hold(key, attempt('r1', `attempt ${index}`), LEASE),
      )
      expect(count(results)).toEqual({ held: 1, busy: 19 })
    },
  )

  spec(
    'a thread that is only held does not exist: it is neither loaded nor listed',
    async ({ store, another, say }) => {
      expect(await store.hold(key, r1, LEASE)).toEqual({ status: 'held', version: 0, interrupted: [] })
      expect(await another.load(key)).toEqual(undefined)
      expect(await another.list('alice', { limit: 10 })).toEqual({ threads: [] })
      await store.release(key, r1)
      expect(await another.hold(key, r2, LEASE)).toEqual({ status: 'held', version: 0, interrupted: [] })
      await another.release(key, r2)
      expect(await say('m1')).toEqual(1)
    },
  )

  spec(
    'the same attempt renews its lease, which then counts from the renewal',
    async ({ store, another, say, advance }) => {
      await say('m1')
      const held = { status: 'held', version: 1, interrupted: [] }
      expect(await store.hold(key, r1, LEASE)).toEqual(held)
      advance(LEASE - 1)
      expect(await store.hold(key, r1, LEASE)).toEqual(held)
      advance(LEASE - 1)
      expect(await another.hold(key, r2, LEASE)).toEqual({ status: 'busy', runId: 'r1' })
      advance(1)
      expect((await another.hold(key, r2, LEASE)).status).toEqual('held')
    },
  )

  spec(
    'only the attempt that holds the thread appends under its run',
    async ({ store, another, say, idsAfter }) => {
      await say('m1')
      const change = { version: 1, messages: [text('m2', 'm1')], head: 'm2' }
      expect(await store.append(key, { ...change, run: r1 })).toEqual({ status: 'lost' })
      await store.hold(key, r1, LEASE)
      for (const run of [r2, attempt('r1', 'another')])
        expect(await another.append(key, { ...change, run })).toEqual({ status: 'lost' })
      expect(await idsAfter(1)).toEqual([])
      expect(await store.append(key, { ...change, run: r1 })).toEqual({ status: 'appended', version: 2 })
      expect(await store.append(key, { ...change, run: r1, head: null })).toEqual({
        status: 'stale',
        version: 2,
      })
      await store.release(key, r1)
      expect(await store.append(key, { version: 2, run: r1 })).toEqual({ status: 'lost' })
    },
  )

  spec(
    'what is appended without a run does not need the hold, and leaves it',
    async ({ store, another, say }) => {
      await store.hold(key, r1, LEASE)
      expect(await say('m1')).toEqual(1)
      expect(await another.hold(key, r2, LEASE)).toEqual({ status: 'busy', runId: 'r1' })
      expect(await store.append(key, { version: 1, run: r1 })).toEqual({ status: 'appended', version: 2 })
    },
  )

  spec(
    'a lease that has ended lets the next run take the thread, and the old one has lost it',
    async ({ store, another, say, advance }) => {
      await say('m1')
      await store.hold(key, r1, LEASE)
      await store.append(key, { version: 1, run: r1, cursor: '17' })
      expect((await another.load(key))?.run).toEqual({ runId: 'r1', cursor: '17', lapsed: false })
      advance(LEASE)
      expect((await another.load(key))?.run).toEqual({ runId: 'r1', cursor: '17', lapsed: true })
      const interrupted = [{ runId: 'r1', cursor: '17' }]
      expect(await another.hold(key, r2, LEASE)).toEqual({ status: 'held', version: 2, interrupted })
      expect((await store.load(key))?.run).toEqual({ runId: 'r2', lapsed: false })
      expect(await store.append(key, { version: 2, run: r1, messages: [text('late')] })).toEqual({
        status: 'lost',
      })
      expect(await store.hold(key, r1, LEASE)).toEqual({ status: 'busy', runId: 'r2' })
      await store.release(key, r1)
      expect(await another.append(key, { version: 2, run: r2 })).toEqual({ status: 'appended', version: 3 })
    },
  )

  spec(
    'until somebody takes the thread, a run whose lease has ended still holds it',
    async ({ store, say, advance }) => {
      await say('m1')
      await store.hold(key, r1, LEASE)
      advance(10 * LEASE)
      expect(await store.append(key, { version: 1, run: r1 })).toEqual({ status: 'appended', version: 2 })
      expect(await store.hold(key, r1, LEASE)).toEqual({ status: 'held', version: 2, interrupted: [] })
      expect(await store.abandoned(10)).toEqual([])
    },
  )

  spec(
    'a renewal takes nothing: a run that does not hold the thread any more has lost it, and the thread is as before',
    async ({ store, another, say, advance }) => {
      const renew = (run = r1) => another.hold(key, run, LEASE, { renew: true })
      expect(await renew()).toEqual({ status: 'lost' })
      expect(await store.hold(key, r2, LEASE)).toEqual({ status: 'held', version: 0, interrupted: [] })
      await say('m1')
      expect([await renew(), await renew(attempt('r2', 'another'))]).toEqual([
        { status: 'lost' },
        { status: 'lost' },
      ])
      advance(LEASE)
      expect(await renew()).toEqual({ status: 'lost' })
      expect(await renew(r2)).toEqual({ status: 'held', version: 1, interrupted: [] })
      expect((await store.load(key))?.run).toEqual({ runId: 'r2', lapsed: false })
      await store.release(key, r2)
      expect(await renew(r2)).toEqual({ status: 'lost' })
      expect((await store.load(key))?.run).toEqual(undefined)
    },
  )

  spec(
    'interrupted runs are reported until a run releases the thread, also where the next run dies as well',
    async ({ store, another, advance }) => {
      await store.hold(key, r1, LEASE)
      advance(LEASE)
      const again = attempt('r1', 'again')
      const first = { status: 'held', version: 0, interrupted: [{ runId: 'r1' }] }
      expect(await another.hold(key, again, LEASE)).toEqual(first)
      expect(await another.hold(key, again, LEASE)).toEqual(first)
      advance(LEASE)
      expect(await store.hold(key, r2, LEASE)).toEqual({
        ...first,
        interrupted: [{ runId: 'r1' }, { runId: 'r1' }],
      })
      await store.append(key, { version: 0, run: r2, messages: [text('m1')] })
      await store.release(key, r2)
      expect(await store.hold(key, r2, LEASE)).toEqual({ status: 'held', version: 1, interrupted: [] })
    },
  )

  spec('the last change of a run may release the thread in the same step', async ({ store, another }) => {
    await store.hold(key, r1, LEASE)
    const last = { version: 0, run: r1, messages: [text('m1')], release: true }
    const appended = { status: 'appended', version: 1 }
    expect(await store.append(key, last)).toEqual(appended)
    expect(await another.append(key, last)).toEqual(appended)
    expect((await another.load(key))?.run).toEqual(undefined)
    expect(await another.hold(key, r2, LEASE)).toEqual({ status: 'held', version: 1, interrupted: [] })
  })

  spec(
    'abandoned threads of all owners are found, the oldest first, and each until it is taken',
    async (bench) => {
      const { store, another, advance } = bench
      const keys = ['alice', 'bob', null].map((owner) => ({ owner, threadId: `of ${owner}` }))
      for (const one of keys) {
        await store.hold(one, r1, LEASE)
        advance(1)
      }
      const released = { owner: 'carol', threadId: 't' }
      await store.hold(released, r1, LEASE)
      await store.release(released, r1)
      expect(await another.abandoned(10)).toEqual([])
      const [alice, bob, nobody] = keys.map((one) => ({ ...one, runId: 'r1' }))
      await store.hold({ owner: 'bob', threadId: 'of bob' }, r1, LEASE + 10)
      advance(LEASE - 3)
      expect(await another.abandoned(10)).toEqual([alice])
      advance(20)
      expect(await another.abandoned(10)).toEqual([alice, nobody, bob])
      expect(await another.abandoned(1)).toEqual([alice])
      const recovery = attempt('recovery')
      await another.hold({ owner: 'alice', threadId: 'of alice' }, recovery, LEASE)
      expect(await store.abandoned(10)).toEqual([nobody, bob])
      await another.release({ owner: 'alice', threadId: 'of alice' }, recovery)
      await store.hold({ owner: null, threadId: 'of null' }, r1, LEASE)
      expect(await store.abandoned(10)).toEqual([bob])
      advance(LEASE)
      expect(await store.abandoned(10)).toEqual([bob, nobody])
    },
  )
}
