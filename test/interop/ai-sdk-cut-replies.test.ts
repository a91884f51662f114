import { handleAiSdkChat } from '@countersign/ai-sdk/server'
import {
  createAgent,
  type ModelEvent,
  memoryLedger,
  memoryThreads,
  scriptedModel,
  tool,
} from '@countersign/server'
import { passMacrotasks } from '@countersign/testing'
import {
  DefaultChatTransport,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from 'ai'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { PlainChat, sendAutomaticallyWhen } from './ai-sdk-chat.js'
import { call, end, said } from './model-events.js'

// A reply of our AI SDK route, whose agent keeps the conversation, breaks off anywhere. The AI SDK's own client sends its messages again.

const payments: readonly (readonly ModelEvent[])[] = [
  [said('First '), said('ann.'), call('send', 'ann'), call('note', 'n1'), end('tool_calls')],
  [said('Then '), said('bob.'), call('note', 'n2'), call('send', 'bob'), end('tool_calls')],
  [said('Both have it.'), end('stop')],
]

const greeting = 'Good morning'

/**
 * The reply to request `lost` breaks off after `chunks`. Returns what the page shows at the end, and what has run. `isEdited`: the user first
 * says something else.
 */
async function talk(lost: number, chunks: number, replies = payments, isEdited = false) {
  const ran: string[] = []
  const shared = {
    description: 'Sends.',
    input: z.object({ to: z.string() }),
    execute: ({ to }: { to: string }) => {
      ran.push(to)
      return to
    },
  }
  const agent = createAgent({
    model: scriptedModel(async function* ({ messages }) {
      const isFirst = JSON.stringify(messages).includes(greeting)
      const at = messages.filter(({ role }) => role === 'assistant').length
      yield* isFirst ? [said('Hello.'), end('stop')] : (replies[at] ?? [])
    }),
    warn: () => {},
    tools: [tool({ ...shared, name: 'send', needsApproval: true }), tool({ ...shared, name: 'note' })],
    threads: memoryThreads(),
    approvals: { secret: 'only for this test, 32 bytes long!', ledger: memoryLedger() },
  })
  let requests = 0
  const fetch: typeof globalThis.fetch = async (url, init) => {
    const request = new Request(new URL(String(url), 'http://localhost/'), init)
    const response = await handleAiSdkChat(agent, request, { context: { subject: 'ada' }, goOnFor: 10_000 })
    const text = await response.text()
    if (++requests !== lost) return new Response(text, response)
    const left = text.split(/(?<=\n\n)/).slice(0, chunks)
    const body = new ReadableStream<string>({
      pull(controller) {
        const chunk = left.shift()
        if (chunk === undefined) controller.error(new TypeError('cut'))
        else controller.enqueue(chunk)
      },
    })
    return new Response(body.pipeThrough(new TextEncoderStream()), response)
  }
  const chat = new PlainChat({
    id: 't',
    transport: new DefaultChatTransport({ api: 'http://localhost/api/chat', fetch }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    onError: () => {},
  })
  await chat.sendMessage({ text: isEdited ? greeting : 'go' })
  if (isEdited) await chat.sendMessage({ text: 'go', messageId: chat.messages[0]?.id ?? '' })
  for (let round = 0; round < 6; round++) {
    const calls = chat.messages.flatMap(({ parts }) => parts.filter(isToolUIPart))
    const asked = calls.find(({ state }) => state === 'approval-requested')
    if (chat.status === 'error') await chat.sendMessage()
    else if (asked?.approval) await chat.addToolApprovalResponse({ id: asked.approval.id, approved: true })
    await passMacrotasks()
    await expect.poll(() => chat.status).toMatch(/ready|error/)
  }
  const shown = chat.messages.flatMap(({ parts }) =>
    parts.map((part) =>
      part.type === 'text' ? part.text : isToolUIPart(part) ? `[${part.toolCallId} ${part.state}]` : '',
    ),
  )
  return { shown: shown.join(''), ran: ran.toSorted() }
}

const thought: readonly ModelEvent[] = [
  { type: 'reasoning-delta', delta: 'Hm, ' },
  { type: 'reasoning-delta', delta: 'well.' },
  { type: 'reasoning-end' },
]
const thoughts = [
  [...thought, said('First '), call('note', 'n1'), said('a note.'), end('tool_calls')],
  [...thought, call('send', 'ann'), said(' Sent?'), end('tool_calls')],
  [...thought, said('Done.'), end('stop')],
]

// The order of a text and the calls of its step may change.
const sorted = ({ shown, ran }: Awaited<ReturnType<typeof talk>>) => ({
  shown: (shown.match(/\[.*?\]|./g) ?? []).toSorted().join(''),
  ran,
})

test.each([1, 2])(
  'a reply of thoughts, calls and texts behind them is gone on with wherever reply %d breaks off',
  async (lost) => {
    const whole = sorted(await talk(0, 0, thoughts))
    for (let chunks = 2; chunks < 24; chunks++)
      expect([chunks, sorted(await talk(lost, chunks, thoughts))]).toEqual([chunks, whole])
  },
)

test('an answer to a request that another page has left behind is sent once, and the page is told what became of the call', async () => {
  let requests = 0
  const agent = createAgent({
    model: scriptedModel(async function* ({ messages }) {
      const said = messages.filter(({ role }) => role === 'user').length
      yield* [call('send', said === 1 ? 'ann' : 'bob'), end('tool_calls')]
    }),
    warn: () => {},
    tools: [
      tool({
        name: 'send',
        description: 'Sends.',
        input: z.object({ to: z.string() }),
        needsApproval: true,
        execute: () => 'sent',
      }),
    ],
    threads: memoryThreads(),
    approvals: { secret: 'only for this test, 32 bytes long!', ledger: memoryLedger() },
  })
  const context = { subject: 'ada' }
  const fetch: typeof globalThis.fetch = async (url, init) => {
    if (++requests > 9) throw new Error('too many requests')
    return handleAiSdkChat(agent, new Request(new URL(String(url), 'http://localhost/'), init), { context })
  }
  const open = (messages: UIMessage[]) =>
    new PlainChat({
      id: 't',
      messages,
      transport: new DefaultChatTransport({ api: 'http://localhost/api/chat', fetch }),
      sendAutomaticallyWhen,
    })
  const page = open([])
  await page.sendMessage({ text: 'one' })
  const other = open(JSON.parse(JSON.stringify(page.messages)))
  await other.sendMessage({ text: 'two' })
  const asked = page.messages.flatMap(({ parts }) => parts.filter(isToolUIPart))
  await page.addToolApprovalResponse({ id: asked[0]?.approval?.id ?? '', approved: true })
  await passMacrotasks()
  await expect.poll(() => page.status).toMatch(/ready|error/)
  const shown = page.messages.flatMap(({ parts }) => parts.filter(isToolUIPart))
  expect([requests, page.status, shown]).toMatchObject([
    3,
    'error',
    [{ toolCallId: 'ann', state: 'output-error' }],
  ])
})

test('a reply to an edited message is gone on with wherever it breaks off, and the edit stays', async () => {
  const whole = await talk(0, 0, payments, true)
  for (let chunks = 1; chunks < 10; chunks++)
    expect([chunks, await talk(2, chunks, payments, true)]).toEqual([chunks, whole])
})

test.each([1, 2])(
  'wherever reply %d breaks off, the SDK client gets the rest, and each call runs once',
  async (lost) => {
    const shown =
      'goFirst ann.[ann output-available][n1 output-available]Then bob.[n2 output-available][bob output-available]Both have it.'
    // Before that, the page has no message that the reply could continue: the SDK sends the user's as an edited one.
    for (let chunks = 2; chunks < 16; chunks++)
      expect([chunks, await talk(lost, chunks)]).toEqual([chunks, { shown, ran: ['ann', 'bob', 'n1', 'n2'] }])
  },
)
