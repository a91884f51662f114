import type { SuiteRunner } from '../runner.js'
import { type PersistenceUnderTest, rich, type Spec, saying, silence } from './bench.js'

const awkwardIds = [
  '',
  ' ',
  '__proto__',
  'constructor',
  'length',
  'getItem',
  'toString',
  'a',
  'a.corrupt',
  'a%2Ecorrupt',
  'a%002ecorrupt',
  'A',
  'a/b?c#d&e=f',
  'a\u0000b',
  'a\nb',
  'é',
  'e\u0301',
  '👩🏽‍⚖️',
  '\ud800',
  '\udfff',
  '%d800',
  'x'.repeat(10_000),
  `${'x'.repeat(10_000)}y`,
]

export function keeping(spec: Spec<PersistenceUnderTest>, expect: SuiteRunner['expect']): void {
  spec('a thread that was never saved has no record', async ({ persistence }) => {
    expect(await persistence.load('unknown')).toEqual(undefined)
    expect(await persistence.load('__proto__')).toEqual(undefined)
  })

  spec('a record comes back as it was saved', async ({ persistence }) => {
    await persistence.save('a', rich)
    const loaded = await persistence.load('a')
    expect(loaded).toEqual(rich)
    // Compared as text too, because a comparison by value may ignore a member named `__proto__`.
    expect(JSON.stringify(loaded)).toEqual(JSON.stringify(rich))
    expect(await persistence.load('a')).toEqual(rich)
  })

  spec('a record of a million characters comes back whole', async ({ persistence }) => {
    const long = saying('0123456789'.repeat(100_000))
    await persistence.save('a', long)
    expect(await persistence.load('a')).toEqual(long)
  })

  spec('a record without messages is not the same as none', async ({ persistence }) => {
    await persistence.save('a', silence)
    expect(await persistence.load('a')).toEqual(silence)
  })

  spec('a save replaces the earlier record', async ({ persistence }) => {
    await persistence.save('a', rich)
    await persistence.save('a', saying('later'))
    expect(await persistence.load('a')).toEqual(saying('later'))
  })

  spec('a removed record is gone and can be saved anew', async ({ persistence }) => {
    await persistence.save('a', rich)
    await persistence.remove('a')
    expect(await persistence.load('a')).toEqual(undefined)
    await persistence.save('a', saying('anew'))
    expect(await persistence.load('a')).toEqual(saying('anew'))
  })

  spec('removing what is not there changes nothing', async ({ persistence }) => {
    await persistence.save('a', rich)
    await persistence.remove('b')
    expect(await persistence.load('a')).toEqual(rich)
  })

  spec('any string is the id of a thread of its own', async ({ persistence }) => {
    for (const id of awkwardIds) await persistence.save(id, saying(`of ${JSON.stringify(id)}`))
    for (const id of awkwardIds) {
      expect(await persistence.load(id)).toEqual(saying(`of ${JSON.stringify(id)}`))
    }
    for (const [index, id] of awkwardIds.entries()) {
      await persistence.remove(id)
      const left = await Promise.all(awkwardIds.map((each) => persistence.load(each)))
      expect(left.map((record) => record !== undefined)).toEqual(awkwardIds.map((_, at) => at > index))
    }
  })

  spec('of saves at once the last one stands', async ({ persistence }) => {
    const numbers = Array.from({ length: 20 }, (_, index) => index)
    await Promise.all(numbers.map((number) => persistence.save('a', saying(String(number)))))
    expect(await persistence.load('a')).toEqual(saying('19'))
  })

  spec('acts at once take effect in their order', async ({ persistence }) => {
    const acts = [
      persistence.save('a', saying('first')),
      persistence.load('a'),
      persistence.remove('a'),
      persistence.load('a'),
      persistence.save('a', saying('second')),
    ]
    expect(await Promise.all(acts)).toEqual([undefined, saying('first'), undefined, undefined, undefined])
    expect(await persistence.load('a')).toEqual(saying('second'))
  })

  spec(
    'updates at once each change what the one before left, and one that throws or leaves nothing counts too',
    async ({ persistence }) => {
      // Optional: a client falls back to load, save and remove.
      const update = persistence.update?.bind(persistence)
      if (!update) return
      const numbers = Array.from({ length: 20 }, (_, index) => index)
      await Promise.all(
        numbers.map((number) =>
          update('a', (stored) => ({ ...silence, state: [...((stored?.state as number[]) ?? []), number] })),
        ),
      )
      expect((await persistence.load('a'))?.state).toEqual(numbers)
      const failing = update('a', () => {
        throw new Error('no')
      })
      expect(
        await failing.then(
          () => 'done',
          () => 'rejected',
        ),
      ).toEqual('rejected')
      expect((await persistence.load('a'))?.state).toEqual(numbers)
      await update('a', () => undefined)
      expect(await persistence.load('a')).toEqual(undefined)
    },
  )

  spec('a record changed after the save is kept as it was when saved', async ({ persistence }) => {
    const state = { count: 1 }
    const saving = persistence.save('a', { ...saying('x'), state })
    state.count = 2
    await saving
    expect(await persistence.load('a')).toEqual({ ...saying('x'), state: { count: 1 } })
  })

  spec('a save that rejects leaves the earlier record', async ({ persistence }) => {
    await persistence.save('a', rich)
    const cyclic: Record<string, unknown> = {}
    cyclic.self = () => cyclic
    cyclic.big = 1n
    const rejected = await persistence.save('a', { ...saying('x'), state: cyclic }).then(
      () => false,
      () => true,
    )
    expect(rejected).toEqual(true)
    expect(await persistence.load('a')).toEqual(rich)
  })
}
