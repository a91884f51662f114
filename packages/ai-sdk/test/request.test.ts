import { readAiSdkBody } from '@countersign/ai-sdk/server'
import { expect, test } from 'vitest'

test('the metadata of a message is taken once, however many steps it has', () => {
  const steps = Array.from({ length: 500 }, () => [
    { type: 'step-start' },
    { type: 'text', text: 'a' },
  ]).flat()
  const metadata = { of: Array.from({ length: 500 }, () => 0), aiSdk: 'no', countersign: 'no' }
  const message = { id: 'a', role: 'assistant', metadata, parts: steps }
  const body = { id: 'chat', messages: [message, { ...message, id: 'b', metadata: 'text' }] }
  const { messages } = readAiSdkBody(body).input
  expect(messages).toHaveLength(1000)
  expect(messages[0]).toMatchObject({ id: 'a', metadata: { of: metadata.of } })
  expect(messages.flatMap((one) => (one.metadata ? [one.metadata] : []))).toEqual([{ of: metadata.of }])
})
