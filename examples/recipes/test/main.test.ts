import { expect, test, vi } from 'vitest'

test('S2.68 S2.36 the recipes run as a program, with a scripted model and no key', async () => {
  vi.spyOn(console, 'warn').mockImplementation(() => {})
  const printed: string[] = []
  vi.spyOn(console, 'log').mockImplementation((line) => void printed.push(String(line)))
  vi.stubGlobal('process', { ...process, argv: ['node', 'main.js'], env: {} })
  await import('../src/main.js')
  const headings = printed.flatMap((line) => line.match(/^\n# (.+)/)?.[1] ?? [])
  expect(headings).toEqual(['approval-loop', 'batch', 'verdict-map', 'live-verdicts'])
  const live = printed.slice(printed.indexOf('\n# live-verdicts') + 1).map((line) => JSON.parse(line))
  expect(
    live.filter(({ type }) => type === 'approval-requested').map(({ toolCallId }) => toolCallId),
  ).toEqual(['c2', 'c3'])
  expect(live.filter(({ type }) => type === 'output').length).toBe(3)
  expect(live.at(-1)).toMatchObject({ type: 'turn', turn: 3, stopReason: 'stop' })
})
