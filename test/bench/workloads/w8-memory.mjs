import { join } from 'node:path'
import { contenders } from '../contenders/index.mjs'
import { median } from '../measure.mjs'
import { runOnce, uncollected } from '../processes.mjs'
import { number } from '../report.mjs'

const KiB = 1024
const MiB = KiB * KiB

const columns = [
  {
    key: 'alone',
    title: 'allocated per delta',
    task: { name: 'allocated', history: 0 },
    unit: 'KB',
    per: 1000,
  },
  {
    key: 'history',
    title: '… with 200 messages',
    task: { name: 'allocated', history: 200 },
    unit: 'KB',
    per: 1000,
  },
  {
    key: 'message',
    title: 'kept by a message of 256 KB',
    task: { name: 'kept', turns: 1, size: 256 * KiB },
    unit: 'MiB',
    per: MiB,
  },
  {
    key: 'conversation',
    title: 'kept by a conversation of 2 MB',
    task: { name: 'kept', turns: 32, size: 64 * KiB },
    unit: 'MiB',
    per: MiB,
  },
]

export async function run({ scale, log }) {
  const repeats = scale === 'full' ? 5 : 1
  const measured = []
  for (const { id, name } of contenders) {
    const values = {}
    for (const { key, task } of columns) {
      const small = scale === 'tiny' && task.size ? { ...task, turns: 1, size: 1000 } : task
      values[key] = median(await measureAgain(id, small, repeats))
    }
    measured.push({ contender: id, name, ...values })
    log(`  ${id}`)
  }
  return [
    {
      id: 'w8',
      title: 'W8 Memory',
      columns: ['', ...columns.map(({ title }) => title)],
      rows: measured.map((one) => [
        one.name,
        ...columns.map(({ key, unit, per }) => `${number(one[key] / per)} ${unit}`),
      ]),
      facts: { measured },
      notes: [
        'Each number comes from its own process. Allocation is measured with 1,000 deltas of 4 to 12 characters, kept memory with deltas of 64 characters.',
      ],
    },
  ]
}

/** What takes a contender many seconds is measured once. */
async function measureAgain(contender, task, repeats) {
  const began = performance.now()
  const found = []
  do found.push(await measureIn(contender, task))
  while (found.length < repeats && performance.now() - began < found.length * 15_000)
  return found
}

function measureIn(contender, task) {
  return runOnce(join(import.meta.dirname, '../memory.mjs'), [contender, JSON.stringify(task)], uncollected)
}
