import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  ChatClient,
  type ChatClientOptions,
  fetchServerSentEvents,
  type Preview,
  postAnswers,
  previewEdits,
  type ToolCallPart,
} from '@countersign/client'
import { serverHistory } from '@countersign/client/server-history'
import {
  type AgentOptions,
  createAgent,
  type ModelEvent,
  memoryLedger,
  memoryThreads,
  scriptedModel,
  tool,
} from '@countersign/server'
import { toNodeAnswerHandler, toNodeHandler, toNodePreviewHandler } from '@countersign/server/node'
import { until } from '@countersign/testing'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { failOnUnhandledRejections } from './open-chat.js'

failOnUnhandledRejections()

const diff = (before: string, after = 'new'): Preview => ({ kind: 'diff', before, after })

/** A server on loopback whose tool changes a file that others may change, and what its page sends. */
async function startServer(options: Partial<AgentOptions> = {}, live = false) {
  const world = { text: 'one', written: [] as unknown[] }
  const write = tool({
    name: 'write',
    description: 'Writes the file.',
    input: z.object({ text: z.string() }),
    needsApproval: true,
    allowEdits: true,
    preview: ({ text }) => diff(world.text, text),
    execute: ({ text }, context) => {
      world.written.push(text, context.preview)
      return 'written'
    },
  })
  const done: ModelEvent[] = [
    { type: 'text-delta', delta: 'Done.' },
    { type: 'finish', reason: 'stop' },
  ]
  const model = scriptedModel([
    [
      { type: 'tool-call', id: 'c1', name: 'write', arguments: '{"text":"new"}' },
      { type: 'finish', reason: 'tool_calls' },
    ],
    done,
    done,
    done,
  ])
  const secret = 'a secret of more than thirty-two characters'
  const approvals = { ledger: memoryLedger(), secret }
  const agent = createAgent({ model, tools: [write], approvals, warn: () => {}, ...options })
  const context = () => ({ subject: 'ada' })
  const routes = new Map([
    ['/chat', toNodeHandler(agent, { context, ...(live && { live }) })],
    ['/answers', toNodeAnswerHandler(agent, { context })],
    ['/preview', toNodePreviewHandler(agent, { context })],
  ])
  const server = createServer((request, response) => void routes.get(`${request.url}`)?.(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { world, model, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

/** `alter` changes the text of the stream on its way. */
function openPage(
  url: string,
  alter: (text: string) => string = (text) => text,
  more: (url: string) => Partial<ChatClientOptions> = () => ({}),
) {
  const sent: string[] = []
  const fetchAltered: typeof fetch = async (input, init) => {
    sent.push(`${init?.body}`)
    const response = await fetch(input, init)
    const changed = response.body
      ?.pipeThrough(new TextDecoderStream())
      .pipeThrough(new TransformStream({ transform: (text, out) => out.enqueue(alter(text)) }))
      .pipeThrough(new TextEncoderStream())
    return new Response(changed, response)
  }
  const connection = fetchServerSentEvents(`${url}/chat`, { fetch: fetchAltered })
  const client = new ChatClient({ connection, ...more(url) })
  onTestFinished(() => client.dispose())
  return { client, sent }
}

const asked = (client: ChatClient, count = 1) =>
  until(
    client,
    ({ pendingApprovals, status }) => pendingApprovals.length === count && status === 'awaiting-approval',
  )

function callOf(client: ChatClient): ToolCallPart {
  const parts = client.getSnapshot().messages.flatMap(({ parts: all }) => all)
  const call = parts.find((part) => part.type === 'tool-call')
  if (call?.type !== 'tool-call') throw new Error('no call')
  return call
}

const idOf = (client: ChatClient) => callOf(client).approval?.id ?? ''
const approve = (client: ChatClient) => client.addToolApprovalResponse({ id: idOf(client), approved: true })

test('V2 V3 the page gets the preview, returns it with the answer, and the call runs', async () => {
  const { url, world } = await startServer()
  const { client, sent } = openPage(url)
  void client.sendMessage('go')
  await asked(client)
  expect(callOf(client).approval?.preview).toEqual(diff('one'))
  expect(await approve(client)).toEqual({ status: 'sent' })
  expect(callOf(client).state).toBe('complete')
  expect(world.written).toEqual(['new', diff('one')])
  // Once with the answer, not again in the history, then or later.
  await client.sendMessage('thanks')
  expect(sent.map((body) => body.split('"before":"one"').length - 1)).toEqual([0, 1, 0])
})

test('V4 the call is open again with the new request, and its second answer runs it', async () => {
  const { url, world, model } = await startServer()
  const { client } = openPage(url)
  void client.sendMessage('go')
  await asked(client)
  const first = idOf(client)
  world.text = 'two'
  expect(await approve(client)).toEqual({ status: 'sent' })
  await asked(client)
  expect(callOf(client)).toMatchObject({
    state: 'approval-requested',
    approval: { preview: diff('two'), previous: diff('one') },
  })
  expect(callOf(client).approval?.approved).toBeUndefined()
  expect(idOf(client)).not.toBe(first)
  expect(model.requests).toHaveLength(1)
  // A second click on the request that is gone.
  expect(await client.addToolApprovalResponse({ id: first, approved: true })).toEqual({
    status: 'already-answered',
  })
  await approve(client)
  expect(callOf(client).state).toBe('complete')
  expect(world.written).toEqual(['new', diff('two')])
})

test('V2 a preview that is altered, dropped or added on the way makes the request unanswerable', async () => {
  const event = /"preview":\{"after":"new","before":"one","kind":"diff"\},/
  const alterations: ((text: string) => string)[] = [
    (text) => text.replaceAll('"before":"one"', '"before":"xxx"'),
    (text) => text.replaceAll(new RegExp(event, 'g'), ''),
    (text) => text.replaceAll('"kind":"diff"', '"kind":"text"'),
  ]
  for (const alter of alterations) {
    const { url, world } = await startServer()
    const { client } = openPage(url, alter)
    void client.sendMessage('go')
    await asked(client)
    await approve(client)
    expect(callOf(client)).toMatchObject({
      state: 'cancelled',
      error: { code: 'approval-tampered' },
    })
    expect(world.written).toEqual([])
  }
})

test('V2 a preview that differs between the event and the interrupt makes the request unanswerable at once', async () => {
  const { url } = await startServer()
  const { client } = openPage(url, (text) => text.replace('"before":"one"', '"before":"xxx"'))
  void client.sendMessage('go')
  await until(
    client,
    ({ status, messages }) => status !== 'submitted' && status !== 'streaming' && messages.length === 2,
  )
  expect(callOf(client).approval?.problem).toBe('approval-changed')
})

test('V4 with a live answer, the open run asks again', async () => {
  const { url, world } = await startServer({}, true)
  const { client } = openPage(url, undefined, () => ({
    connection: { ...fetchServerSentEvents(`${url}/chat`), ...postAnswers(`${url}/answers`) },
  }))
  void client.sendMessage('go')
  await until(client, ({ pendingApprovals }) => pendingApprovals.length === 1)
  const first = idOf(client)
  world.text = 'two'
  void approve(client)
  await until(client, () => idOf(client) !== first && callOf(client).state === 'approval-requested')
  expect(callOf(client).approval).toMatchObject({ preview: diff('two'), previous: diff('one') })
  await approve(client)
  expect(callOf(client).state).toBe('complete')
  expect(world.written).toEqual(['new', diff('two')])
})

test('V4 V2 with a conversation that the server keeps', async () => {
  const { url, world } = await startServer({ threads: memoryThreads() })
  const { client, sent } = openPage(url, undefined, () => ({
    connection: serverHistory(fetchServerSentEvents(`${url}/chat`)),
  }))
  expect(sent).toEqual([])
  void client.sendMessage('go')
  await asked(client)
  world.text = 'two'
  void approve(client)
  await until(client, () => callOf(client).approval?.previous !== undefined)
  await asked(client)
  await approve(client)
  expect(callOf(client).state).toBe('complete')
  expect(world.written).toEqual(['new', diff('two')])
})

test('V8 the page gets the preview of edited arguments, and approves them with it', async () => {
  const { url, world } = await startServer()
  const { client } = openPage(url)
  void client.sendMessage('go')
  await asked(client)
  const id = idOf(client)
  const input = { text: 'mine' }
  const refused = await client.addToolApprovalResponse({ id, approved: true, input })
  expect(refused).toMatchObject({ status: 'refused', code: 'approval-edit-invalid' })
  // Open as before, with the preview of the call as the model made it.
  expect(callOf(client)).toMatchObject({ state: 'approval-requested', approval: { preview: diff('one') } })
  const edited = await previewEdits(`${url}/preview`, client, { id, input })
  expect(edited.preview).toEqual(diff('one', 'mine'))
  await client.addToolApprovalResponse({ id, approved: true, input, edited })
  expect(callOf(client)).toMatchObject({ state: 'complete', approval: { input, edited } })
  expect(world.written).toEqual(['mine', diff('one', 'mine')])
  await expect(previewEdits(`${url}/preview`, client, { id, input })).rejects.toMatchObject({
    code: 'invalid-argument',
  })
})

test('V8 edits that are not allowed are refused before the answer', async () => {
  const { url } = await startServer()
  const { client } = openPage(url)
  void client.sendMessage('go')
  await asked(client)
  await expect(
    previewEdits(`${url}/preview`, client, { id: idOf(client), input: { text: 5 } }),
  ).rejects.toMatchObject({
    code: 'http-status',
    data: { status: 409 },
  })
})

test('V10 after a reload, the page still has what it showed', async () => {
  const { url, world } = await startServer()
  const first = openPage(url)
  void first.client.sendMessage('go')
  await asked(first.client)
  const { messages } = first.client.getSnapshot()
  const { threadId } = first.client
  const second = openPage(url, undefined, () => ({ threadId, initialMessages: messages }))
  expect(callOf(second.client).approval?.preview).toEqual(diff('one'))
  await approve(second.client)
  expect(callOf(second.client).state).toBe('complete')
  expect(world.written).toEqual(['new', diff('one')])
})
