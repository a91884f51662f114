import { aiSdk } from '@countersign/ai-sdk'
import { handleAiSdkChat } from '@countersign/ai-sdk/server'
import { ChatClient, type ChatClientOptions, clientTool, fetchServerSentEvents } from '@countersign/client'
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
async function open(route: 'ai-sdk' | 'ag-ui', hasThreads: boolean, fails = false) {
  const ran: string[] = []
  const agent = createAgent({
    model: scriptedModel(({ messages }) => {
      const asked = messages.at(-1)?.role === 'user' && (messages.length === 1 ? 'bob' : 'carl')
      return asked ? [call('send', asked), end('tool_calls')] : [said('Done.'), end('stop')]
    }),
    ...(hasThreads && { threads: memoryThreads() }),
    tools: [
      tool({
        name: 'send',
        description: 'Sends.',
        input: z.object({ to: z.string() }),
        needsApproval: true,
        execute: ({ to }) => {
          ran.push(to)
          if (fails) throw new Error('No network.')
          return { sent: to }
        },
      }),
    ],
    approvals: { secret: 'only for this test, 32 bytes long!', ledger: memoryLedger() },
    warn: () => {},
  })
  const handle = route === 'ai-sdk' ? handleAiSdkChat : handleChat
  let chunks = Number.POSITIVE_INFINITY
  const fetch: typeof globalThis.fetch = async (url, init) => {
    const request = new Request(new URL(String(url), 'http://localhost/'), init)
    const response = await handle(agent, request, { context: { subject: 'ada' } })
    const most = chunks
    chunks = Number.POSITIVE_INFINITY
    if (most === 0) {
      await response.text()
      throw new TypeError('lost')
    }
    if (most === Number.POSITIVE_INFINITY) return response
    const frames = (await response.text()).split(/(?<=\n\n)/)
    return new Response(frames.slice(0, most).join(''), response)
  }
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
  /** The next response breaks off behind so many chunks. */
  const breakOff = (behind: number) => {
    chunks = behind
  }
  return { first, other, ran, breakOff }
}

function answer(client: ChatClient, approved: boolean) {
  const [asked] = client.getSnapshot().pendingApprovals
  return client.addToolApprovalResponse({ id: asked?.approval.id ?? '', approved })
}

/** The call whose request both pages were shown. */
const callOf = (client: ChatClient) =>
  client
    .getSnapshot()
    .messages.flatMap(({ parts }) => parts)
    .find((part) => part.type === 'tool-call')

const everywhere = (['ai-sdk', 'ag-ui'] as const).flatMap((route) =>
  [true, false].map((hasThreads) => ({ route, hasThreads })),
)

test.each(everywhere)(
  'a denial behind the approval of another page is shown as the call that ran ($route, threads: $hasThreads)',
  async ({ route, hasThreads }) => {
    const { first, other, ran } = await open(route, hasThreads)
    await answer(other, true)
    await answer(first, false)
    expect(ran).toEqual(['bob'])
    expect(callOf(first)).toMatchObject({
      state: 'complete',
      output: { sent: 'bob' },
      approval: { delivery: 'settled', problem: 'approval-conflict' },
    })
  },
)

test.each(everywhere)(
  'an approval behind the denial of another page is shown as denied, and says why ($route, threads: $hasThreads)',
  async ({ route, hasThreads }) => {
    const { first, other, ran } = await open(route, hasThreads)
    await answer(other, false)
    await answer(first, true)
    expect(ran).toEqual([])
    expect(callOf(first)).toMatchObject({
      state: 'denied',
      approval: { delivery: 'settled', problem: 'approval-conflict' },
    })
  },
)

test.each(everywhere)(
  'a message behind the approval of another page leaves the call as it ran ($route, threads: $hasThreads)',
  async ({ route, hasThreads }) => {
    const { first, other, ran } = await open(route, hasThreads)
    await answer(other, true)
    await first.sendMessage('and?')
    expect(ran).toEqual(['bob'])
    expect(callOf(first)).toMatchObject({
      state: 'complete',
      output: { sent: 'bob' },
      approval: { delivery: 'settled' },
    })
  },
)

test.each([0, 1, 2, 3])(
  'a page whose reply broke off behind %i chunks learns with the next one that the call ran which it had denied or closed',
  async (chunks) => {
    for (const { route, hasThreads } of everywhere) {
      for (const act of ['no', 'message'] as const) {
        const { first, other, ran, breakOff } = await open(route, hasThreads)
        await answer(other, true)
        breakOff(chunks)
        await (act === 'no' ? answer(first, false) : first.sendMessage('and?'))
        await first.retry()
        expect(ran).toEqual(['bob'])
        expect([route, hasThreads, act, callOf(first)]).toMatchObject([
          ...[route, hasThreads, act],
          { state: 'complete', output: { sent: 'bob' }, approval: { delivery: 'settled' } },
        ])
      }
    }
  },
)

test.each(everywhere)(
  'a message behind the approval of another page leaves a call that failed as failed ($route, threads: $hasThreads)',
  async ({ route, hasThreads }) => {
    const { first, other } = await open(route, hasThreads, true)
    await answer(other, true)
    await first.sendMessage('and?')
    expect(callOf(first)).toMatchObject({ state: 'error', approval: { delivery: 'settled' } })
  },
)

test.each(['ai-sdk', 'ag-ui'] as const)(
  'an approved client tool runs with the defaults of its schema (%s)',
  async (route) => {
    const input = z.object({ to: z.string(), copies: z.number().default(1) })
    const about = { name: 'send', description: 'Sends.', input }
    const agent = createAgent({
      model: scriptedModel(({ messages }) =>
        messages.at(-1)?.role === 'user'
          ? [call('send', 'bob'), end('tool_calls')]
          : [said('Done.'), end('stop')],
      ),
      tools: [clientTool({ ...about, needsApproval: true, execute: () => 'sent' })],
      approvals: { secret: 'only for this test, 32 bytes long!', ledger: memoryLedger() },
    })
    const handle = route === 'ai-sdk' ? handleAiSdkChat : handleChat
    const fetch: typeof globalThis.fetch = (url, init) =>
      handle(agent, new Request(new URL(String(url), 'http://localhost/'), init), {
        context: { subject: 'ada' },
      })
    const api = 'http://localhost/api/chat'
    const ran: unknown[] = []
    const client = new ChatClient({
      threadId: 't',
      connection: route === 'ai-sdk' ? aiSdk({ api, fetch }) : fetchServerSentEvents(api, { fetch }),
      tools: [
        clientTool({
          ...about,
          execute: (given) => {
            ran.push(given)
            return 'sent'
          },
        }),
      ],
    })
    onTestFinished(client.dispose)
    await client.sendMessage('send to bob')
    await answer(client, true)
    expect(ran).toEqual([{ to: 'bob', copies: 1 }])
    await expect.poll(() => client.getSnapshot().status).toBe('ready')
    const parts = client.getSnapshot().messages.flatMap((message) => message.parts)
    expect(parts.filter(({ type }) => type === 'tool-call')).toMatchObject([{ state: 'complete' }])
  },
)
