import { aiSdk } from '@countersign/ai-sdk'
import { handleAiSdkChat } from '@countersign/ai-sdk/server'
import { ChatClient, type ChatClientOptions, fetchServerSentEvents } from '@countersign/client'
import {
  createAgent,
  handleChat,
  memoryLedger,
  memoryThreads,
  scriptedModel,
  tool,
} from '@countersign/server'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { call, end, said } from './model-events.js'

// Two pages of one user, both with our client, show the same request: what one of them decides, the other learns, whatever the route.

/** One page asked for a call and was shown the request; `other` shows the same. */
async function open(route: 'ai-sdk' | 'ag-ui', hasThreads: boolean) {
  const ran: string[] = []
  const agent = createAgent({
    model: scriptedModel(({ messages }) =>
      messages.length === 1 ? [call('send', 'bob'), end('tool_calls')] : [said('Done.'), end('stop')],
    ),
    ...(hasThreads && { threads: memoryThreads() }),
    tools: [
      tool({
        name: 'send',
        description: 'Sends.',
        input: z.object({ to: z.string() }),
        needsApproval: true,
        execute: ({ to }) => {
          ran.push(to)
          return { sent: to }
        },
      }),
    ],
    approvals: { secret: 'only for this test, 32 bytes long!', ledger: memoryLedger() },
    warn: () => {},
  })
  const handle = route === 'ai-sdk' ? handleAiSdkChat : handleChat
  const fetch: typeof globalThis.fetch = (url, init) =>
    handle(agent, new Request(new URL(String(url), 'http://localhost/'), init), {
      context: { subject: 'ada' },
    })
  const api = 'http://localhost/api/chat'
  const page = (initialMessages: ChatClientOptions['initialMessages'] = []) => {
    const connection = route === 'ai-sdk' ? aiSdk({ api, fetch }) : fetchServerSentEvents(api, { fetch })
    const client = new ChatClient({ threadId: 't', connection, initialMessages })
    onTestFinished(client.dispose)
    return client
  }
  const first = page()
  await first.sendMessage('send to bob')
  const other = page(JSON.parse(JSON.stringify(first.getSnapshot().messages)))
  return { first, other, ran }
}

function answer(client: ChatClient, approved: boolean) {
  const [asked] = client.getSnapshot().pendingApprovals
  return client.addToolApprovalResponse({ id: asked?.approval.id ?? '', approved })
}

const callsOf = (client: ChatClient) =>
  client
    .getSnapshot()
    .messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'tool-call' ? [part] : [])))

const everywhere = (['ai-sdk', 'ag-ui'] as const).flatMap((route) =>
  [true, false].map((hasThreads) => ({ route, hasThreads })),
)

test.each(everywhere)(
  'a no behind the yes of another page is shown as the call that ran ($route, threads: $hasThreads)',
  async ({ route, hasThreads }) => {
    const { first, other, ran } = await open(route, hasThreads)
    await answer(other, true)
    await answer(first, false)
    expect(ran).toEqual(['bob'])
    expect(callsOf(first)).toMatchObject([
      {
        state: 'complete',
        output: { sent: 'bob' },
        approval: { delivery: 'settled', problem: 'approval-conflict' },
      },
    ])
  },
)

test.each(everywhere)(
  'a yes behind the no of another page is shown as denied, and says why ($route, threads: $hasThreads)',
  async ({ route, hasThreads }) => {
    const { first, other, ran } = await open(route, hasThreads)
    await answer(other, false)
    await answer(first, true)
    expect(ran).toEqual([])
    expect(callsOf(first)).toMatchObject([
      { state: 'denied', approval: { delivery: 'settled', problem: 'approval-conflict' } },
    ])
  },
)

test.each(everywhere)(
  'a message behind the yes of another page leaves the call as it ran ($route, threads: $hasThreads)',
  async ({ route, hasThreads }) => {
    const { first, other, ran } = await open(route, hasThreads)
    await answer(other, true)
    await first.sendMessage('and?')
    expect(ran).toEqual(['bob'])
    expect(callsOf(first)).toMatchObject([
      { state: 'complete', output: { sent: 'bob' }, approval: { delivery: 'settled' } },
    ])
  },
)
