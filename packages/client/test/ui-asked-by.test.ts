import { askedBy, askersOf } from '@countersign/client/ui'
import { expect, test } from 'vitest'

const words = (metadata: unknown) =>
  askedBy(askersOf(metadata)).map(({ before, name }) => `${before} ${name.text}`)

test('who asks comes first, then those that it works for; the agent itself is not named', () => {
  const planner = { id: 's1', name: 'Planner' }
  expect(words({ subagent: { id: 's2', name: 'Mailer', parents: [planner] } })).toEqual([
    'Requested by the subagent Mailer',
    ', for Planner',
  ])
  expect(words({ subagent: { id: 's2' } })).toEqual(['Requested by the subagent s2'])
  expect(words(undefined)).toEqual([])
})

test('a name is safe to show', () => {
  expect(words({ subagent: { id: 's1', name: 'Mail\u202eer\n' } })[0]).not.toMatch(/[\u202e\n]/)
})
