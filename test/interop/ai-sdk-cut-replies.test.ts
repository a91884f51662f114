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
import { DefaultChatTransport, isToolUIPart, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { PlainChat } from './ai-sdk-chat.js'

// A reply of our AI SDK route, whose agent keeps the conversation, breaks off anywhere. The AI SDK's own client sends its messages again.

const call = (name: string, id: string): ModelEvent => ({
  type: 'tool-call',
  id,
  name,
  arguments: `{"to":"${id}"}`,
})
const said = (delta: string): ModelEvent => ({ type: 'text-delta', delta })
const end = (reason: 'stop' | 'tool_calls'): ModelEvent => ({ type: 'finish', reason })

/** Reply number `lost` breaks off after `chunks`. Returns what the page shows at the end, and what has run. */
async function talk(lost: number, chunks: number) {
  const ran: string[] = []
  const shared = {
    description: 'Sends.',
    input: z.object({ to: z.string() }),
    execute: ({ to }: { to: string }) => {
      ran.push(to)
      return to
    },
  }
  const replies = [
    [said('First '), said('ann.'), call('send', 'ann'), call('note', 'n1'), end('tool_calls')],
    [said('Then '), said('bob.'), call('note', 'n2'), call('send', 'bob'), end('tool_calls')],
    [said('Both have it.'), end('stop')],
  ]
  const agent = createAgent({
    model: scriptedModel(async function* ({ messages }) {
      yield* replies[messages.filter(({ role }) => role === 'assistant').length] ?? []
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
  await chat.sendMessage({ text: 'go' })
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
