import { expect, test } from 'vitest'
import { main } from './run.mjs'

test('streamed turns, open runs and stored conversations are measured beside a hand-written handler and the peers', async () => {
  const printed: string[] = []
  const { rows } = await main(['--no-build', '--only', 'server-stream,server-open-runs,server-threads'], {
    scale: 'tiny',
    write: (text) => printed.push(text),
  })
  const text = printed.join('\n')
  for (const name of ['hand-written SSE handler', 'Countersign with its run log', 'TanStack AI', 'AI SDK'])
    expect(text).toContain(name)
  // What is counted does not depend on the machine.
  const counted = rows.filter(
    ({ name = '' }) => /writes to it|relative to that$/.test(name) && /KB: request|writes/.test(name),
  )
  expect(counted).toHaveLength(2)
  expect(counted.every(({ ok }) => ok)).toBe(true)
  expect(rows.filter(({ acceptance }) => acceptance?.includes('T.40'))).toHaveLength(6)
})
