import { aiSdk } from '@countersign/ai-sdk'
import { handleAiSdkChat } from '@countersign/ai-sdk/server'
import { nextStep, type ToolCallPart } from '@countersign/client'
import { createAgent, memoryLedger, tool } from '@countersign/server'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { PlainChat } from '../interop/ai-sdk-chat.js'
import { callOf, openClient } from './open-chat.js'

// Answers and messages over the protocol of the AI SDK.

test.each([
  [true, 'error', 'check'],
  [false, 'denied', undefined],
] as const)(
  'over the AI SDK, an answer (%s) that may be lost is settled by the next message as the history says',
  async (approved, state, next) => {
    const bodies: { messages: { parts: { state?: string }[] }[] }[] = []
    const stream = (...chunks: readonly object[]) =>
      new Response(
        [{ type: 'start', messageId: `m${bodies.length}` }, ...chunks, { type: 'finish' }]
          .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
          .join(''),
        { headers: { 'content-type': 'text/event-stream' } },
      )
    const fetch: typeof globalThis.fetch = async (_, init) => {
      bodies.push(JSON.parse(String(init?.body)))
      if (bodies.length === 2) throw new TypeError('no network')
      if (bodies.length > 1) return stream()
      return stream(
        { type: 'tool-input-available', toolCallId: 'c1', toolName: 'pay', input: {} },
        { type: 'tool-approval-request', toolCallId: 'c1', approvalId: 'a1' },
      )
    }
    const client = openClient({ connection: aiSdk({ api: 'http://localhost/chat', fetch }), threadId: 't' })
    await client.sendMessage('go')
    await client.addToolApprovalResponse({ id: 'a1', approved })
    await client.sendMessage('and?')
    expect(bodies[2]?.messages[1]?.parts[0]?.state).toBe(approved ? 'output-error' : 'output-denied')
    const call: ToolCallPart = callOf(client, 'c1')
    expect(call).toMatchObject({ state, approval: { delivery: 'settled' } })
    expect(nextStep(call)?.next).toBe(next)
  },
)

test('an AI SDK page that answers an earlier message keeps what it shows', async () => {
  const ran: unknown[] = []
  const remove = tool({
    name: 'remove',
    description: 'Removes a file.',
    input: z.object({}),
    needsApproval: true,
    execute: () => ran.push('c1'),
  })
  const model = {
    id: 'test/model',
    async *stream({ messages }: { messages: readonly { role: string; content: unknown }[] }) {
      const last = messages.at(-1)
      if (last?.role === 'user' && JSON.stringify(last.content).includes('remove')) {
        yield { type: 'tool-call' as const, id: 'c1', name: 'remove', arguments: '{}' }
        yield { type: 'finish' as const, reason: 'tool_calls' as const }
        return
      }
      yield { type: 'text-delta' as const, delta: last?.role === 'user' ? 'Paris.' : 'Removed.' }
      yield { type: 'finish' as const, reason: 'stop' as const }
    },
  }
  const approvals = { secret: 'only for this test, 32 bytes long!', ledger: memoryLedger() }
  const agent = createAgent({ model, tools: [remove], approvals, warn: () => {} })
  let isDown = false
  const { DefaultChatTransport } = await import('ai')
  const fetch: typeof globalThis.fetch = (url, init) =>
    isDown
      ? Promise.resolve(new Response('', { status: 500 }))
      : handleAiSdkChat(agent, new Request(new URL(String(url)), init), { context: { subject: 'ann' } })
  const chat = new PlainChat({ transport: new DefaultChatTransport({ api: 'http://localhost/chat', fetch }) })
  const texts = () =>
    chat.messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])))
  await chat.sendMessage({ text: 'remove it' })
  const part = chat.messages.at(-1)?.parts.find(({ type }) => type === 'tool-remove')
  const id = (part && 'approval' in part && part.approval?.id) || expect.fail('nothing was asked')
  isDown = true
  await chat.addToolApprovalResponse({ id, approved: true })
  await chat.sendMessage()
  isDown = false
  await chat.sendMessage({ text: 'The capital of France?' })
  expect(texts()).toEqual(expect.arrayContaining(['remove it', 'The capital of France?', 'Paris.']))
  await chat.sendMessage()
  expect(texts()).toEqual(expect.arrayContaining(['remove it', 'The capital of France?', 'Paris.']))
})
