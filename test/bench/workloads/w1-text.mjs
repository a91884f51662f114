import { checkText } from '../checks.mjs'
import { longMessage, manyDeltas } from '../scenarios.mjs'
import { asShipped } from './as-shipped.mjs'
import { timed } from './timed.mjs'

const KB = 1024
const scales = {
  full: {
    deltas: [500, 1000, 2000, 4000, 8000, 16_000, 32_000],
    sizes: [1, 4, 16, 64, 128, 256, 512, 1024, 2048],
  },
  quick: { deltas: [500, 4000, 8000, 16_000, 32_000], sizes: [1, 16, 64, 128, 256, 2048] },
  tiny: { deltas: [20, 40], sizes: [1] },
}

export async function run({ scale, ...rest }) {
  const { deltas, sizes } = scales[scale]
  const length = (size) => longMessage(size * KB).deltas.length
  return [
    {
      id: 'w1',
      title: 'W1 Text in deltas of 4 to 12 characters',
      unit: 'deltas',
      ...(await timed({
        kind: 'text',
        sizes: deltas,
        scenario: manyDeltas,
        check: checkText,
        count: (n) => n,
        least: (n) => n,
        ...rest,
      })),
      notes: [await asShipped(scale === 'tiny' ? 5 : 500)],
    },
    {
      id: 'w1-length',
      title: 'W1 One message of 1 KB to 2 MB, in the same deltas',
      unit: 'KB',
      ...(await timed({
        kind: 'text',
        sizes,
        scenario: (size) => longMessage(size * KB),
        check: checkText,
        count: length,
        least: length,
        ...rest,
      })),
    },
  ]
}
