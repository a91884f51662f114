import { aims } from '../../scripts/size.mjs'
import { exponent } from './measure.mjs'
import { costOf, number } from './report.mjs'

const peers = ['ai-sdk', 'tanstack', 'ag-ui']
const strict = 'countersign-sync'
const KiB = 1024

/**
 * What the numbers have to show, and whether they do: `{ workload, claim, text, value, bound, ok }`, for the workloads that were run.
 * Countersign is judged where it publishes every delta on its own, as the floor and the peers do; of a first conversation also by default.
 */
export function judge(tables) {
  const by = new Map(tables.map((table) => [table.id, table]))
  const claims = {
    cold: cold(by.get('cold')),
    collected: timedBounds.flatMap(({ id, what }) => collected(by.get(`collected-${id}`), what)),
    w7: sizes(by.get('w7')),
    ...Object.fromEntries(timedBounds.map((bounds) => [bounds.id, timedClaims(by.get(bounds.id), bounds)])),
    'w1-length': flat(by.get('w1-length')),
    w8: memory(by.get('w8')),
    w6: drawing(by.get('w6')),
    w9: bursts(by.get('w9'), by.get('w9-page')),
  }
  return Object.entries(claims).flatMap(([workload, own]) => own.map((claim) => ({ workload, ...claim })))
}

function cold(table) {
  if (!table) return []
  const of = (id) => table.facts.measured.find(({ contender }) => contender === id)
  const [own, shipped, floor, tanstack] = [strict, 'countersign', 'immutable', 'tanstack'].map(of)
  const many = 'first 2,000 deltas in a fresh process'
  return [
    atMost(
      '8',
      'import of the client, bundled for a page, relative to TanStack AI',
      own.bundled / tanstack.bundled,
      0.2,
      'x',
    ),
    atMost('8', 'the same, loaded by Node from the packages', own.published / tanstack.published, 0.2, 'x'),
    atMost('8', `${many}, relative to the immutable floor`, own.many / floor.many, 2.5, 'x'),
    atMost('8', `${many}, by default`, shipped.many / floor.many, 2.5, 'x'),
    atMost('8', `allocated per delta, ${many}`, own.bytes / 1000, 1, ' KB'),
  ]
}

function collected(table, what) {
  if (!table) return []
  const ratio = costOf(table.points, strict).ratio
  return [atMost('9', `${what} after a collection, relative to the immutable floor`, ratio, 3, 'x')]
}

const timedBounds = [
  { id: 'w1', what: '32,000 text deltas', ratio: 2, growth: 1.1 },
  { id: 'w3', what: '1,000 deltas on 5,000 messages', ratio: 2, growth: 1.1 },
  { id: 'w4', what: '1,000 approval requests sent and answered', ratio: 2, growth: 1.3 },
  { id: 'w5', what: '32,000 SSE events', ratio: 2, growth: 1.1 },
  { id: 'w2', what: '400 KB of arguments', ratio: 3, growth: 1.1 },
]

function timedClaims(table, { id, what, ratio, growth }) {
  if (!table) return []
  const { points } = table
  const cost = costOf(points, strict)
  const grown = exponent(points.filter((point) => point.contender === strict))
  const asItComes = costOf(points, 'countersign')
  return [
    faster(id, what, points),
    atMost(
      id === 'w2' ? '2' : '1',
      `${what}, relative to the immutable floor (by default ${number(asItComes.ratio)})`,
      cost.ratio,
      ratio,
      'x',
    ),
    atMost('3', `${what}: growth exponent`, grown ?? Number.NaN, growth, ''),
  ]
}

/** Against each peer at the largest size that it was measured at. */
function faster(id, what, points) {
  const lead = peers.map((peer) => {
    const theirs = costOf(points, peer)
    const ours = points.find((point) => point.contender === strict && point.size === theirs?.size)
    return theirs ? theirs.ms / ours.ms : Number.POSITIVE_INFINITY
  })
  const least = Math.min(...lead)
  return {
    claim: '1',
    text: `${what}: the fastest peer takes (${id})`,
    value: `${number(least)}x as long`,
    bound: 'more than 1x',
    ok: least > 1,
  }
}

/** The cost per delta of a long message is that of a short one, and no size costs much more than the one before. */
function flat(table) {
  if (!table) return []
  const costs = table.points
    .filter((point) => point.contender === strict)
    .map(({ size, ms, count }) => ({ size, us: (ms * 1000) / count }))
  const steps = costs.slice(1).map(({ size, us }, i) => ({ size, ratio: us / costs[i].us }))
  const worst = steps.reduce((a, b) => (b.ratio > a.ratio ? b : a), { size: 0, ratio: 0 })
  return [
    atMost(
      '3',
      'cost per delta of the longest message, relative to the shortest',
      costs.at(-1).us / costs[0].us,
      1.5,
      'x',
    ),
    atMost(
      '3',
      `cost per delta from one size to the next (at ${worst.size} KB): no cliff`,
      worst.ratio,
      2,
      'x',
    ),
  ]
}

function memory(table) {
  const own = table?.facts.measured.find((one) => one.contender === strict)
  if (!own) return []
  return [
    atMost('4', 'allocated per delta', own.alone / 1000, 1, ' KB'),
    atMost('4', 'allocated per delta with 200 messages', own.history / 1000, 2.5, ' KB'),
    atMost('4', 'kept by a message of 256 KB', own.message / KiB / KiB, 1, ' MiB'),
  ]
}

function sizes(table) {
  if (!table) return []
  const own = table.facts.sizes.filter(({ contender }) => contender === 'countersign')
  return [
    ...own.map(({ with: kind, gzip }) =>
      kind === 'client'
        ? atMost('5', 'ChatClient and fetchServerSentEvents, min + gzip', gzip / KiB, aims.first, ' KiB')
        : atMost('5', `the same with useChat of ${kind}`, gzip / KiB, aims.withBinding, ' KiB'),
    ),
    atMost(
      '5',
      'the part of the client that loads later, when needed',
      own[0].later / KiB,
      aims.later,
      ' KiB',
    ),
  ]
}

function drawing(table) {
  if (!table) return []
  const { measured } = table.facts
  return measured
    .filter(({ name }) => name === 'countersign')
    .flatMap(({ framework, us, settled, asDefault }) => {
      const floor = measured.find((one) => one.framework === framework && one.name === 'floor')
      const perFrame = asDefault.streaming <= asDefault.frames + 2
      const theirs = measured.filter((one) => one.framework === framework && peers.includes(one.name))
      const lead = Math.min(...theirs.map((one) => one.us / us))
      const value = `${number(lead)}x as long`
      return [
        ...(theirs.length > 0
          ? [
              {
                claim: '1',
                text: `${framework}: the fastest peer takes (w6)`,
                value,
                bound: 'more than 1x',
                ok: lead > 1,
              },
            ]
          : []),
        atMost('6', `${framework}: settled rows rendered`, settled + asDefault.settled, 0, ''),
        atMost('6', `${framework}: CPU relative to the hand-written floor`, us / floor.us, 1.1, 'x'),
        {
          claim: '6',
          text: `${framework}: renders of the streaming row, by default`,
          value: `${asDefault.streaming} in ${asDefault.frames} frames`,
          bound: 'one a frame',
          ok: perFrame,
        },
      ]
    })
}

function bursts(told, page) {
  const claims = []
  const own = told?.facts.measured.find((one) => one.contender === 'countersign')
  if (own) claims.push(atMost('7', 'notifications of 2,000 buffered deltas', own.notified, 10, ''))
  for (const one of page?.facts.measured ?? []) {
    claims.push(atMost('7', `longest task in Chromium, ${one.name}`, Math.max(0, ...one.long), 50, ' ms'))
    if (one.hidden) claims.push(atMost('7', `notifications in Chromium, ${one.name}`, one.notified, 10, ''))
  }
  return claims
}

function atMost(claim, text, value, bound, unit) {
  return {
    claim,
    text,
    value: `${number(value)}${unit}`,
    bound: `at most ${bound}${unit}`,
    ok: value <= bound,
  }
}
