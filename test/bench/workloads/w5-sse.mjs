import { checkText } from '../checks.mjs'
import { eventStream } from '../scenarios.mjs'
import { timed } from './timed.mjs'

const scales = {
  full: [500, 2000, 4000, 8000, 16_000, 32_000],
  quick: [500, 4000, 8000, 32_000],
  tiny: [20, 40],
}

export async function run({ scale, ...rest }) {
  return [
    {
      id: 'w5',
      title: 'W5 A body of server-sent events, cut anywhere',
      unit: 'events',
      ...(await timed({
        kind: 'sse',
        sizes: scales[scale],
        scenario: eventStream,
        check: checkText,
        count: (n) => n,
        least: (n) => n,
        ...rest,
      })),
      notes: [
        'Reads of 1 byte to 4 KiB. The AI SDK reads its own wire format, the others AG-UI; the floor decodes, splits at blank lines and parses.',
      ],
    },
  ]
}
