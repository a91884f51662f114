import { runTimed } from './timed.mjs'
import { tables as texts } from './w1-text.mjs'
import { tables as histories } from './w3-history.mjs'
import { tables as calls } from './w4-calls.mjs'
import { tables as streams } from './w5-sse.mjs'

const works = [
  { work: texts[0], size: 32_000, what: '32,000 text deltas' },
  { work: histories[0], size: 5000, what: '1,000 deltas on 5,000 messages' },
  { work: calls[0], size: 1000, what: '1,000 approval requests sent and answered' },
  { work: streams[0], size: 32_000, what: '32,000 SSE events' },
]

/** The largest size of each, and a collection before every round. */
export const tables = works.map(({ work, size, what }) => ({
  ...work,
  id: `collected-${work.id}`,
  title: `After a collection: ${what}`,
  sizes: { full: [size], quick: [size], tiny: work.sizes.tiny },
  collects: true,
  notes: undefined,
}))

/** Those that do all of them in seconds; the others grow with the square of what they are given. */
const only = ['mutable', 'immutable', 'countersign-sync', 'countersign', 'ai-sdk']

export const run = (options) => runTimed('collected', tables, { only, ...options })
