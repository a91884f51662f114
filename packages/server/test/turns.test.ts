import { frozen, type Message } from '@countersign/core'
import {
  assertReconciled,
  cancelAllPending,
  isReconciled,
  prepareMessagesForModel,
} from '@countersign/server'
import { expect, test } from 'vitest'
import { full } from '../../../test/full.js'
import { randomFrom } from '../../../test/random.js'

// Of stored conversations, what was made of earlier turns is remembered. It must be what is made of the whole history anew.

const functions: readonly (readonly [string, (history: readonly Message[]) => unknown])[] = [
  ['prepareMessagesForModel', (history) => prepareMessagesForModel(history)],
  ['prepareMessagesForModel with activities', (history) => prepareMessagesForModel(history, 'activity')],
  ['cancelAllPending', (history) => cancelAllPending(history)],
  ['isReconciled', isReconciled],
  [
    'assertReconciled',
    (history) => {
      try {
        return assertReconciled(history)
      } catch (error) {
        return String(error)
      }
    },
  ],
]

/** The next message: calls and results with few ids, so that they repeat, are open, come late, or belong to nothing. */
function messageOf(n: number, random: () => number): Message {
  const pick = <T>(...list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
  const own = pick(undefined, undefined, { decided: {} }, { token: 'x' }, { providerExecuted: true })
  const metadata = own && { metadata: { countersign: own } }
  const call = () => ({
    ...{ id: pick('a', 'b', 'c'), type: 'function' as const },
    ...{ function: { name: pick('find', 'client.x'), arguments: '{}' }, ...metadata },
  })
  const id = `m${n}`
  switch (pick('user', 'call', 'calls', 'text', 'result', 'result', 'result', 'activity', 'reasoning')) {
    case 'user':
      return { id, role: 'user', content: `${n}` }
    case 'call':
      return { id, role: 'assistant', toolCalls: [call()] }
    case 'calls':
      return { id, role: 'assistant', content: 'so', toolCalls: [call(), call()] }
    case 'text':
      return { id, role: 'assistant', content: pick('yes', '') }
    case 'activity':
      return { id, role: 'activity', activityType: 'x', content: {} }
    case 'reasoning':
      return { id, role: 'reasoning', content: 'hm', ...metadata }
    default:
      return { id, role: 'tool', toolCallId: pick('a', 'b', 'c'), content: '1', ...metadata }
  }
}

test('what is remembered of earlier turns is what is made of the whole history, however it grows, branches and is replaced', () => {
  const random = randomFrom(20261125)
  for (let round = 0; round < (full ? 300 : 100); round++) {
    let history: readonly Message[] = []
    for (let step = 0; step < 25; step++) {
      const roll = random()
      const cut = Math.floor(random() * history.length)
      // A message is replaced in its place, or another branch begins.
      if (roll < 0.05 && history.length > 0) history = history.with(cut, frozen(messageOf(cut, random)))
      else if (roll < 0.1) history = history.slice(0, cut)
      const added = Array.from({ length: 1 + Math.floor(random() * 3) }, (_, at) => {
        const message = messageOf(1000 * step + at, random)
        return random() < 0.95 ? frozen(message) : message
      })
      history = [...history, ...added]
      for (const [name, make] of functions)
        expect(make(history), `${name} in round ${round}`).toEqual(
          make(structuredClone(history) as Message[]),
        )
    }
  }
})

test('of a history that may change, nothing is remembered', () => {
  const call = { id: 'a', type: 'function' as const, function: { name: 'find', arguments: '{}' } }
  const result: Message = { id: 'r', role: 'tool', toolCallId: 'a', content: '1' }
  const history: Message[] = [
    { id: 'u1', role: 'user', content: 'go' },
    { id: 'a1', role: 'assistant', toolCalls: [call] },
    result,
    { id: 'u2', role: 'user', content: 'on' },
  ]
  expect(isReconciled(history)).toBe(true)
  result.toolCallId = 'b'
  expect(isReconciled(history)).toBe(false)
})
