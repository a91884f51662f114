import { aiSdk } from '@countersign/ai-sdk'
import { handleAiSdkChat } from '@countersign/ai-sdk/server'
import { ChatClient, type Connection, nextStep, type ToolCallPart } from '@countersign/client'
import { persistent } from '@countersign/client/persistence'
import { createAgent, memoryLedger, tool } from '@countersign/server'
import { cut, gated, resolve, scriptedConnection, started, text } from '@countersign/testing'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { PlainChat } from '../interop/ai-sdk-chat.js'
import { memoryPersistence } from './fake-browser.js'
import { callOf } from './open-chat.js'

// What a stranger found in the fourteenth session: answers whose delivery is unknown, and AI SDK pages that answer an earlier message.

function open(connection: Connection, persistence?: ReturnType<typeof persistent>) {
  const client = new ChatClient({ connection, threadId: 't', ...(persistence && { persistence }) })
  onTestFinished(() => client.dispose())
  return client
}

const lost = [gated(1), [started(), cut()], [resolve(), text('Done.')]]

test.each([true, false])(
  'an answer that may have arrived is sent again by retry(), once (repeatsAnswers: %s)',
  async (repeatsAnswers) => {
    const stored = memoryPersistence()
    const connection = { ...scriptedConnection(lost), repeatsAnswers }
    const first = open(connection, persistent(stored, { saveEvery: 0 }))
    await first.sendMessage('go')
    await first.addToolApprovalResponse({ id: 'a1', approved: true })
    expect(callOf(first, 'c1').approval?.delivery).toBe('unknown')
    first.dispose()
    const page = open(connection, persistent(stored))
    await page.restore()
    expect(nextStep(callOf(page, 'c1'))).toMatchObject({ state: 'kept', next: 'retry' })
    await page.retry()
    expect(connection.requests).toHaveLength(3)
    await page.retry()
    expect(connection.requests).toHaveLength(3)
    expect(callOf(page, 'c1')).toMatchObject({ state: 'complete', approval: { delivery: 'settled' } })
  },
)

test('an answer that may be lost stays so when a later run says nothing about it, and retry() sends it', async () => {
  const connection = scriptedConnection([gated(1), [started(), cut()], [text('Hello.')], [resolve()]])
  const client = open(connection)
  await client.sendMessage('go')
  await client.addToolApprovalResponse({ id: 'a1', approved: true })
  await client.sendMessage('are you there?')
  expect(client.getSnapshot().status).toBe('ready')
  expect(callOf(client, 'c1').approval?.delivery).toBe('unknown')
  await client.retry()
  expect(connection.requests.at(-1)?.resume).toMatchObject([{ interruptId: 'a1' }])
  expect(callOf(client, 'c1').state).toBe('complete')
})

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
    const client = open(aiSdk({ api: 'http://localhost/chat', fetch }))
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
