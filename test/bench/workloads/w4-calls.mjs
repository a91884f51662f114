import { checkCalls } from '../checks.mjs'
import { manyCalls } from '../scenarios.mjs'
import { timed } from './timed.mjs'

const scales = { full: [10, 30, 100, 300, 1000], quick: [10, 100, 300, 1000], tiny: [2, 4] }

export async function run({ scale, ...rest }) {
  return [
    {
      id: 'w4',
      title: 'W4 Tool calls in one message, each asked about, then each approved',
      unit: 'calls',
      ...(await timed({
        kind: 'calls',
        sizes: scales[scale],
        scenario: manyCalls,
        check: checkCalls,
        count: (n) => n,
        ...rest,
      })),
      notes: ['The AG-UI client takes all answers at once: it has no way to give one.'],
    },
  ]
}
