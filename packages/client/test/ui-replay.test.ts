import type { MandateChoice } from '@countersign/client'
import { replayAnswer } from '@countersign/client/ui'
import { displayText, type MandateReplay } from '@countersign/core'
import { expect, test } from 'vitest'

const call = (toolCallId: string) => ({ toolCallId, askedAt: '2026-01-01T00:00:00.000Z' })

const replayed = (replay: MandateReplay, approved: boolean) => {
  const choice: MandateChoice = {
    mandate: { id: 'm1', label: 'Files in logs/', ...(approved ? {} : { decide: 'deny' }) },
    label: displayText('Files in logs/'),
    disabled: false,
    response: { id: 'a1', approved, mandate: 'm1' },
  }
  return replayAnswer({ replayMandate: async () => replay }, choice)
}

test('the replay of a mandate is told in words', async () => {
  expect(await replayed({ asked: 0, matched: [] }, true)).toBe(
    'There is no earlier request of this kind in this chat.',
  )
  expect(await replayed({ asked: 1, matched: [] }, false)).toBe(
    'Of 1 earlier request in this chat, it would have refused 0.',
  )
  expect(await replayed({ asked: 3, matched: [call('a'), call('b')] }, true)).toBe(
    'Of 3 earlier requests in this chat, it would have allowed 2.',
  )
})
