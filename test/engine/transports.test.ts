import { beforeAll, expect, test } from 'vitest'
import { type Ending, playStory } from './story.js'
import { ways } from './wires.js'

let reference: Ending

beforeAll(async () => {
  const { requests, ...ending } = await playStory(ways['in-process'] ?? (() => Promise.reject()))
  expect(requests).toBe(3)
  reference = ending
})

test('the story runs each approved call once, with the arguments that were approved, and no other', () => {
  expect(reference.ran).toEqual({
    search: [{ q: 'team' }],
    send: [{ to: 'team@example.org' }, { to: 'boss@example.org' }],
    delete: [],
  })
  const calls = reference.messages.flatMap(({ parts }) => parts.filter((part) => part.type === 'tool-call'))
  expect(calls.map(({ id, state }) => `${id} ${state}`)).toEqual([
    'c1 complete',
    'c2 complete',
    'c3 denied',
    'c4 complete',
  ])
})

for (const [name, connect] of Object.entries(ways)) {
  test(`U.9 the same story ends with the same messages, executions and model input: ${name}`, async () => {
    const { requests, ...ending } = await playStory(connect)
    expect(ending).toEqual(reference)
    // one run that stays open, or one for the question, one for two answers, one for the third
    expect(requests).toBe(name.endsWith('live') ? 1 : 3)
  })
}
