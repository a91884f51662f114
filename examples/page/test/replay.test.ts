import { expect, test } from 'vitest'
import { replayWords } from '../src/grant-words.js'

const call = (toolCallId: string) => ({ toolCallId, askedAt: '2026-01-01T00:00:00.000Z' })

test('the replay of a mandate is told in words', () => {
  expect(replayWords({ asked: 0, matched: [] }, 'allowed')).toBe(
    'There is no earlier request of this kind in this chat.',
  )
  expect(replayWords({ asked: 1, matched: [] }, 'refused')).toBe(
    'Of 1 earlier request in this chat, it would have refused 0.',
  )
  expect(replayWords({ asked: 3, matched: [call('a'), call('b')] }, 'allowed')).toBe(
    'Of 3 earlier requests in this chat, it would have allowed 2.',
  )
})
