import { handleAiSdkChat, readAiSdkRequest, toAiSdkResponse } from '@countersign/ai-sdk/server'
import {
  type Agent,
  createAgent,
  type ModelEvent,
  type ModelRequest,
  scriptedModel,
  tool,
  toolDefinition,
} from '@countersign/server'
import {
  DefaultChatTransport,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithToolCalls,
  type UIMessage,
} from 'ai'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { PlainChat, sendAutomaticallyWhen } from './ai-sdk-chat.js'
import { serveFetch } from './fetch-server.js'

/** An agent whose model says one list of events after the other, behind a route for the SDK's clients. */
async function open(
  turns: readonly (readonly ModelEvent[])[],
  tools: Parameters<typeof createAgent>[0]['tools'] = [],
  who = { subject: 'ada' },
) {
  const asked: ModelRequest[] = []
  const model = scriptedModel((request) => {
    asked.push(request)
    return [...(turns[asked.length - 1] ?? [finish('stop')])]
  })
  const agent = createAgent({ model, tools: tools ?? [], onError: () => {}, warn: () => {} })
  const url = await serveFetch((request) => handleAiSdkChat(agent, request, { context: { ...who } }))
  return { agent, asked, url }
}

function chatOn(url: string, init: Partial<ConstructorParameters<typeof PlainChat>[0]> = {}): PlainChat {
  return new PlainChat({
    transport: new DefaultChatTransport({ api: url }),
    sendAutomaticallyWhen,
    ...init,
  })
}

/** Nothing is under way, and every answer was taken. */
async function settled(chat: PlainChat): Promise<void> {
  const isTaken = () =>
    !chat.messages.at(-1)?.parts.some((part) => isToolUIPart(part) && part.state === 'approval-responded')
  await expect
    .poll(() => chat.status === 'error' || (chat.status === 'ready' && isTaken()), { interval: 5 })
    .toBe(true)
  expect(chat.error).toBeUndefined()
}

const finish = (reason: string): ModelEvent => ({ type: 'finish', reason })

const mail = (sent: string[]) =>
  tool({
    name: 'send_mail',
    description: 'Sends a mail.',
    input: z.object({ to: z.string() }),
    needsApproval: true,
    message: 'A mail goes out.',
    async *execute({ to }: { to: string }): AsyncGenerator<{ state: string }, void> {
      yield { state: 'sending' }
      sent.push(to)
      yield { state: 'sent' }
    },
  })

const approvalOf = (message: UIMessage | undefined) => message?.parts.filter(isToolUIPart).at(-1)?.approval

test("what a model's provider says beside its parts comes back to it through the SDK's client", async () => {
  const sent: string[] = []
  const { url, asked } = await open(
    [
      [
        { type: 'reasoning-delta', delta: 'Hm.' },
        { type: 'reasoning-end', signature: 's1', metadata: { kind: 'thought' } },
        { type: 'text-delta', delta: 'One.' },
        { type: 'text-end', metadata: { item: 't1' } },
        { type: 'text-delta', delta: 'Two.' },
        { type: 'text-end', metadata: { item: 't2' } },
        {
          type: 'tool-call',
          id: 'c1',
          name: 'send_mail',
          arguments: '{"to":"ada"}',
          signature: 'g1',
          metadata: { item: 'c1' },
        },
        finish('tool_calls'),
      ],
      [{ type: 'text-delta', delta: 'Done.' }, finish('stop')],
      [{ type: 'text-delta', delta: 'Again.' }, finish('stop')],
    ],
    [mail(sent)],
  )
  const chat = chatOn(url)
  await chat.sendMessage({ text: 'go' })
  await chat.addToolApprovalResponse({ id: approvalOf(chat.messages.at(-1))?.id ?? '', approved: true })
  await settled(chat)
  await chat.sendMessage({ text: 'and?' })
  expect(sent).toEqual(['ada'])
  for (const { messages } of asked.slice(1)) {
    expect(messages.find(({ role }) => role === 'assistant')?.content).toEqual([
      { type: 'reasoning', text: 'Hm.', signature: 's1', metadata: { kind: 'thought' } },
      { type: 'text', text: 'One.', metadata: { item: 't1' } },
      { type: 'text', text: 'Two.', metadata: { item: 't2' } },
      {
        type: 'tool-call',
        id: 'c1',
        name: 'send_mail',
        arguments: '{"to":"ada"}',
        signature: 'g1',
        metadata: { item: 'c1' },
      },
    ])
    expect(JSON.stringify(messages)).not.toContain('cs1.')
  }
})

test('the user is told what the server says of a request, and sees a running tool report', async () => {
  const sent: string[] = []
  const call: ModelEvent = { type: 'tool-call', id: 'c1', name: 'send_mail', arguments: '{"to":"ada"}' }
  const { url } = await open(
    [
      [call, finish('tool_calls')],
      [{ type: 'text-delta', delta: 'Done.' }, finish('stop')],
    ],
    [mail(sent)],
  )
  const outputs: unknown[] = []
  const chat = chatOn(url)
  await chat.sendMessage({ text: 'go' })
  expect(approvalOf(chat.messages.at(-1))).toEqual({
    id: expect.any(String),
    requestReason: 'A mail goes out.',
    signature: expect.stringMatching(/^cs1\./),
    descriptor: { options: ['deny', 'once'], expiresAt: expect.any(String) },
  })
  await chat.addToolApprovalResponse({ id: approvalOf(chat.messages.at(-1))?.id ?? '', approved: true })
  await settled(chat)
  for (const part of chat.messages.at(-1)?.parts ?? []) if (isToolUIPart(part)) outputs.push(part.output)
  expect(outputs).toEqual([{ state: 'sent' }])
})

test('an approved client tool runs in an SDK client, which the SDK itself does not offer', async () => {
  const call: ModelEvent = { type: 'tool-call', id: 'c1', name: 'locate', arguments: '{"exact":true}' }
  const locate = toolDefinition({
    name: 'locate',
    description: 'Where the person is.',
    input: z.object({ exact: z.boolean() }),
    needsApproval: true,
  }).client(() => null)
  const { url, asked } = await open(
    [
      [call, finish('tool_calls')],
      [{ type: 'text-delta', delta: 'Oslo, then.' }, finish('stop')],
    ],
    [locate],
  )
  const ran: unknown[] = []
  const chat: PlainChat = chatOn(url, {
    onToolCall({ toolCall }) {
      ran.push(toolCall.input)
      void chat.addToolOutput({
        tool: toolCall.toolName,
        toolCallId: toolCall.toolCallId,
        output: { place: 'Oslo' },
      })
    },
  })
  await chat.sendMessage({ text: 'where' })
  expect(ran).toEqual([])
  await chat.addToolApprovalResponse({ id: approvalOf(chat.messages.at(-1))?.id ?? '', approved: true })
  await expect.poll(() => asked.length).toBe(2)
  await settled(chat)
  expect(ran).toEqual([{ exact: true }])
  expect(JSON.stringify(asked[1]?.messages)).toContain('Oslo')
})

test('an old card that is answered after the user went on runs nothing, and the chat goes on', async () => {
  const sent: string[] = []
  const call: ModelEvent = { type: 'tool-call', id: 'c1', name: 'send_mail', arguments: '{"to":"ada"}' }
  const say: readonly ModelEvent[] = [{ type: 'text-delta', delta: 'Hello.' }, finish('stop')]
  const { url } = await open([[call, finish('tool_calls')], say, say, say], [mail(sent)])
  const chat = chatOn(url)
  await chat.sendMessage({ text: 'go' })
  const id = approvalOf(chat.messages.at(-1))?.id ?? ''
  await chat.sendMessage({ text: 'never mind' })
  await chat.addToolApprovalResponse({ id, approved: true })
  await chat.sendMessage({ text: 'hello' })
  expect(chat.error).toBeUndefined()
  expect(sent).toEqual([])
  expect(chat.messages.at(-1)?.parts.at(-1)).toMatchObject({ type: 'text', text: 'Hello.' })
})

test('an answer of somebody else leaves the card of an SDK client open as it was, and the right user can still answer', async () => {
  const sent: string[] = []
  const who = { subject: 'ada' }
  const masked = toolDefinition({
    name: 'send_mail',
    description: 'Sends a mail.',
    input: z.object({ to: z.string() }),
    needsApproval: true,
    message: 'A mail goes out.',
    redact: () => ({ to: '[hidden]' }),
  }).server(({ to }) => {
    sent.push(to)
    return 'sent'
  })
  const call: ModelEvent = { type: 'tool-call', id: 'c1', name: 'send_mail', arguments: '{"to":"ada"}' }
  const { url } = await open([[call, finish('tool_calls')]], [masked], who)
  const chat = chatOn(url)
  await chat.sendMessage({ text: 'go' })
  const shown = chat.messages.at(-1)?.parts.filter(isToolUIPart).at(-1)
  who.subject = 'bob'
  await chat.addToolApprovalResponse({ id: shown?.approval?.id ?? '', approved: true })
  await settled(chat)
  expect(chat.messages.at(-1)?.parts.filter(isToolUIPart).at(-1)).toEqual(shown)
  expect(sent).toEqual([])
  who.subject = 'ada'
  await chat.addToolApprovalResponse({ id: shown?.approval?.id ?? '', approved: true })
  await settled(chat)
  expect(sent).toEqual(['ada'])
})

test('a model that says nothing after its tools does not make an SDK client ask for ever', async () => {
  const call: ModelEvent = { type: 'tool-call', id: 'c1', name: 'look', arguments: '{}' }
  const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' })
  const { url, asked } = await open([[call, finish('tool_calls')]], [look])
  const chat = chatOn(url)
  await chat.sendMessage({ text: 'go' })
  expect(lastAssistantMessageIsCompleteWithToolCalls(chat)).toBe(false)
  expect(asked).toHaveLength(2)
})

test('the agent can be run by the application itself, between the request and its response', async () => {
  const { agent } = await open([[{ type: 'text-delta', delta: 'Hello.' }, finish('stop')]])
  const url = await serveFetch(own(agent))
  const chat = chatOn(url)
  await chat.sendMessage({ text: 'hello' })
  expect(chat.messages.at(-1)?.parts).toMatchObject([
    { type: 'step-start' },
    { type: 'text', text: 'Hello.' },
  ])
})

function own(agent: Agent) {
  return async (request: Request) => {
    const { input, continued } = await readAiSdkRequest(request)
    return toAiSdkResponse(agent.run(input, { context: { subject: 'ada' } }), { continued })
  }
}

const said = fc.string({ minLength: 1 }).map((delta): ModelEvent[] => [{ type: 'text-delta', delta }])
const ended = fc.string({ minLength: 1 }).map((delta): ModelEvent[] => [
  { type: 'text-delta', delta },
  { type: 'text-end', metadata: { item: delta } },
])
const thought = fc.tuple(fc.string(), fc.boolean()).map(([delta, isSigned]): ModelEvent[] => [
  { type: 'reasoning-delta', delta },
  { type: 'reasoning-end', ...(isSigned && { signature: 's', metadata: { a: 1 } }) },
])
const source = fc.webUrl().map((url): ModelEvent[] => [{ type: 'source', source: { id: url, url } }])
const called = fc
  .tuple(
    fc.constantFrom('send_mail', 'look', 'nothing'),
    fc.constantFrom('{"to":"ada"}', '{}', '', '{"to":1}', '{'),
    fc.boolean(),
  )
  .map(([name, text, isSigned]) => ({ name, text, isSigned }))

/** What a model may say in one turn, in any order. Ids of calls are made where they are used. */
const turn = fc.array(fc.oneof(said, ended, thought, source, called), { maxLength: 6 })

function eventsOf(
  parts: readonly (ModelEvent[] | { name: string; text: string; isSigned: boolean })[],
  turnNumber: number,
): ModelEvent[] {
  const events = parts.flatMap((part, index): ModelEvent[] => {
    if (Array.isArray(part)) return part
    const { name, text, isSigned } = part
    const signed = isSigned ? { signature: 'g', metadata: { a: 1 } } : {}
    return [{ type: 'tool-call', id: `c${turnNumber}-${index}`, name, arguments: text, ...signed }]
  })
  return [...events, finish(parts.some((part) => !Array.isArray(part)) ? 'tool_calls' : 'stop')]
}

test('whatever a model says, the SDK reads all of it and its answers lead on', async () => {
  const look = tool({
    name: 'look',
    description: 'Looks.',
    input: z.object({ to: z.string() }),
    execute: ({ to }) => ({ to }),
  })
  await fc.assert(
    fc.asyncProperty(
      fc.array(turn, { minLength: 1, maxLength: 4 }),
      fc.boolean(),
      async (turns, approved) => {
        const sent: string[] = []
        const { url } = await open(turns.map(eventsOf), [mail(sent), look])
        const chat = chatOn(url)
        await chat.sendMessage({ text: 'go' })
        const asked = () =>
          chat.messages
            .flatMap(({ parts }) => parts.filter(isToolUIPart))
            .filter(({ state }) => state === 'approval-requested')
        let answers = 0
        for (let open = asked(); open.length > 0 && answers < 100; open = asked()) {
          for (const { approval } of open)
            await chat.addToolApprovalResponse({ id: approval?.id ?? '', approved })
          answers += open.length
          await settled(chat)
        }
        expect(chat.error).toBeUndefined()
        expect(sent).toHaveLength(approved ? answers : 0)
        const states = chat.messages
          .flatMap(({ parts }) => parts.filter(isToolUIPart))
          .map(({ state }) => state)
        expect(states.filter((state) => !state.startsWith('output-'))).toEqual([])
      },
    ),
    { seed: Number(process.env.SEED ?? 20261122), numRuns: 40 },
  )
})

test("T32 what a tool writes reaches the SDK's client as data parts, sources and message metadata; no model gets it when it comes back", async () => {
  const write = tool({
    name: 'write',
    description: 'Writes.',
    input: z.object({}),
    async execute(_, { write }) {
      await write({ type: 'data', id: 'chart', name: 'chart', data: { points: [1] } })
      await write({ type: 'data', id: 'count', name: 'count', data: 1 })
      await write({ type: 'source', id: 's1', url: 'https://example.org/a', title: 'A' })
      await write({ type: 'metadata', metadata: { cost: 3 } })
      await write({ type: 'data', id: 'chart', name: 'chart', data: { points: [1, 2] } })
      return 'ok'
    },
  })
  const { url, asked } = await open(
    [
      [{ type: 'tool-call', id: 'c1', name: 'write', arguments: '{}' }, finish('tool_calls')],
      [{ type: 'text-delta', delta: 'Done.' }, finish('stop')],
      [{ type: 'text-delta', delta: 'More.' }, finish('stop')],
    ],
    [write],
  )
  const chat = chatOn(url)
  await chat.sendMessage({ text: 'go' })
  await settled(chat)
  const [, reply] = chat.messages
  expect(reply?.metadata).toEqual({ cost: 3 })
  expect(reply?.parts.filter(({ type }) => /^(data|source)-/.test(type))).toMatchObject([
    { type: 'data-chart', id: 'chart', data: { points: [1, 2] } },
    { type: 'data-count', id: 'count', data: 1 },
    { type: 'source-url', sourceId: 's1', url: 'https://example.org/a', title: 'A' },
  ])
  await chat.sendMessage({ text: 'more' })
  await settled(chat)
  expect(asked.length).toBe(3)
  expect(JSON.stringify(asked)).not.toMatch(/points|example\.org|cost/)
})
