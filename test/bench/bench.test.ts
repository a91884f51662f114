import { expect, test } from 'vitest'
import { full } from '../full.js'
import { compare, exponent, median, mergePoints, timeSession } from './measure.mjs'
import { main } from './run.mjs'

// No time is asserted here: what is fast is for `npm run bench` to say, on a machine that does nothing else.

test('the exponent is fitted over the four largest sizes', () => {
  const sizes = [1, 2, 4, 8, 16, 32]
  const square = sizes.map((size) => ({ size, ms: size < 4 ? 1000 : size * size }))
  expect(exponent(square)).toBeCloseTo(2)
  expect(exponent(sizes.map((size) => ({ size, ms: 3 * size })))).toBeCloseTo(1)
  expect(exponent([{ size: 1, ms: 1 }])).toBeUndefined()
})

test('of what was done in several processes the median counts, and who took part once keeps what it took', () => {
  const of = (ms: number) => ({ contender: 'quick', size: 1, ms, runs: 5 })
  const slow = { contender: 'slow', size: 1, ms: 9000, runs: 1 }
  const none = { contender: 'none', size: 1, skipped: true }
  expect(mergePoints([[of(9), slow, none], [of(2)], [of(3)]])).toEqual([{ ...of(3), runs: 15 }, slow, none])
})

test('the median is the middle, and between the middle two', () => {
  expect(median([5, 1, 100])).toBe(5)
  expect(median([1, 2, 3, 100])).toBe(2.5)
})

test('a contender that loses something fails the run, by its name', async () => {
  const forgetful = { id: 'forgetful', name: 'The Forgetful' }
  const running = compare({
    contenders: [forgetful],
    sizes: [3],
    count: (size) => size,
    measure: (_, size) =>
      timeSession({ run: async (clock) => clock.start(), result: () => 2 }, (result) => {
        if (result !== size) throw new Error(`${result} of ${size}`)
      }),
  })
  await expect(running).rejects.toThrow('The Forgetful: 2 of 3')
})

test('contenders take turns, and each is run at least five times after the warm-up', async () => {
  const turns: string[] = []
  const points = await compare({
    contenders: ['a', 'b'].map((id) => ({ id, name: id })),
    sizes: [1],
    count: () => 1,
    measure: async ({ id }) => {
      turns.push(id)
      return 1
    },
  })
  expect(turns.slice(0, 14).join('')).toBe('abababababababab'.slice(0, 14))
  for (const { runs } of points) expect(runs).toBeGreaterThanOrEqual(5)
})

test('every workload that needs no quiet machine runs, is checked and prints its table', async () => {
  const printed: string[] = []
  const names = full
    ? ['cold', 'collected', 'w1', 'w2', 'w3', 'w4', 'w5', 'w6', 'w7', 'w9']
    : ['collected', 'w1', 'w4']
  const { tables, rows } = await main(['--no-build', '--only', names.join(',')], {
    scale: 'tiny',
    write: (text) => printed.push(text),
  })
  expect([...new Set(tables.map(({ id }) => id.split('-')[0]))]).toEqual(names)
  const text = printed.join('\n')
  const titles = [
    'After a collection',
    'W1 Text',
    'W4 Tool calls',
    'AG-UI client',
    'immutable floor',
    'exponent',
    'x floor',
  ]
  for (const title of full ? [...titles, 'W6', 'A first conversation'] : titles) expect(text).toContain(title)
  if (full) expect(text).toMatch(/(ok|MISSES) {2,6}D5/)
  expect(rows.every(({ ok }) => typeof ok === 'boolean')).toBe(true)
})
