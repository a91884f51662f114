import { checkText } from '../checks.mjs'
import { eventStream } from '../scenarios.mjs'
import { runTimed } from './timed.mjs'

export const tables = [
  {
    id: 'w5',
    title: 'W5 A body of server-sent events, split at arbitrary positions',
    unit: 'events',
    kind: 'sse',
    sizes: {
      full: [500, 2000, 4000, 8000, 16_000, 32_000],
      quick: [500, 4000, 8000, 32_000],
      tiny: [20, 40],
    },
    scenario: eventStream,
    check: checkText,
    count: (n) => n,
    least: (n) => n,
    notes: [
      'Reads of 1 byte to 4 KiB. The AI SDK reads its own wire format, the others AG-UI; the floors decode, split at blank lines and parse.',
    ],
  },
]

export const run = (options) => runTimed('w5', tables, options)
