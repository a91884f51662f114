import { aiSdk } from '@countersign/ai-sdk'
import {
  handleAiSdkChat,
  loadAiSdkChat,
  readAiSdkBody,
  resumeAiSdkChat,
  toAiSdkResponse,
} from '@countersign/ai-sdk/server'
import { ChatClient } from '@countersign/client'
import { reconnecting } from '@countersign/client/reconnect'
import {
  createAgent,
  handleChat,
  memoryLedger,
  memoryThreads,
  tool,
  toolDefinition,
} from '@countersign/server'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'

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

test('a run is resumed whatever characters its id has, and a reader who leaves gives its share back', async () => {
  const agent = createAgent({
    model: {
      id: 'test/model',
      async *stream(_, { signal }) {
        yield { type: 'text-delta', delta: 'Hello' }
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
      },
    },
    threads: memoryThreads(),
    limits: { runs: { perOwner: 2, total: 1000 } },
    approvals: { secret: 'only for this test, 32 bytes long!', ledger: memoryLedger() },
    warn: () => {},
  })
  const context = { subject: 'resuming' }
  const messages = [{ id: 'u1', role: 'user', content: 'Hi' }]
  const body = JSON.stringify({ threadId: 't', runId: 'запуск 1', messages, tools: [], context: [] })
  const headers = { 'content-type': 'application/json' }
  const posted = new Request('http://localhost/', { method: 'POST', headers, body })
  const run = await handleChat(agent, posted, { context })
  const reader = run.body?.getReader()
  await reader?.read()
  for (let at = 0; at < 5; at++) {
    const resumed = await resumeAiSdkChat(agent, new Request('http://localhost/t/stream'), { context })
    expect([resumed.status, resumed.headers.get('x-countersign-run-id')]).toEqual([
      200,
      encodeURIComponent('запуск 1'),
    ])
    await resumed.body?.cancel()
  }
  await reader?.cancel()
})

test('a request that waits for the stored conversation counts in the share of its user', async () => {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  const threads = memoryThreads()
  const load = threads.load
  threads.load = async (...given) => {
    await opened
    return load(...given)
  }
  const agent = createAgent({
    model: {
      id: 'test/model',
      async *stream() {
        yield { type: 'text-delta', delta: 'Hello' }
        yield { type: 'finish', reason: 'stop' }
      },
    },
    threads,
    limits: { arrivingBytes: { perOwner: 1_000_000, total: 4_000_000 } },
    approvals: { secret: 'only for this test, 32 bytes long!', ledger: memoryLedger() },
    warn: () => {},
  })
  const post = async (id: string) => {
    const message = { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'x'.repeat(100_000) }] }
    const body = JSON.stringify({ id, messages: [message], trigger: 'submit-message', messageId: 'u1' })
    const headers = { 'content-type': 'application/json' }
    const request = new Request('http://localhost/', { method: 'POST', headers, body })
    const response = await handleAiSdkChat(agent, request, { context: { subject: 'waiting for a load' } })
    await response.text()
    return response.status
  }
  const waiting = [post('a'), post('b'), post('c'), post('d')]
  expect(await post('e')).toBe(429)
  open()
  expect(await Promise.all(waiting)).toEqual([200, 200, 200, 200])
})

test('what a reader who resumes a run is sent of the reply before counts in its share', async () => {
  let steps = 0
  const agent = createAgent({
    model: {
      id: 'test/model',
      async *stream(_, { signal }) {
        if (++steps === 1) {
          yield { type: 'text-delta', delta: 'x'.repeat(200_000) }
          yield { type: 'tool-call', id: 'c1', name: 'look', arguments: '{}' }
          return yield { type: 'finish', reason: 'tool_calls' }
        }
        yield { type: 'text-delta', delta: 'Hello' }
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
      },
    },
    tools: [toolDefinition({ name: 'look', description: 'Looks.', input: z.object({}) }).client(() => null)],
    threads: memoryThreads(),
    limits: { runBytes: { perOwner: 600_000, total: 9_000_000 } },
    approvals: { secret: 'only for this test, 32 bytes long!', ledger: memoryLedger() },
    warn: () => {},
  })
  const context = { subject: 'reading a reply' }
  const post = (messages: readonly unknown[]) => {
    const body = JSON.stringify({ id: 't', messages, trigger: 'submit-message' })
    const headers = { 'content-type': 'application/json' }
    return handleAiSdkChat(agent, new Request('http://localhost/', { method: 'POST', headers, body }), {
      context,
    })
  }
  const asked = { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }
  await (await post([asked])).text()
  const look = { type: 'tool-look', toolCallId: 'c1', state: 'output-available', input: {}, output: 'seen' }
  const run = await post([asked, { id: 'reply_u1', role: 'assistant', parts: [look] }])
  const reader = run.body?.getReader()
  await reader?.read()
  const resume = () => resumeAiSdkChat(agent, new Request('http://localhost/t/stream'), { context })
  const first = await resume()
  expect([first.status, (await resume()).status]).toEqual([200, 429])
  await first.body?.cancel()
  const again = await resume()
  expect(again.status).toBe(200)
  await again.body?.cancel()
  await reader?.cancel()
})

function payments() {
  const ran: string[] = []
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({ to: z.string() }),
    needsApproval: true,
    execute: ({ to }) => {
      ran.push(to)
      return to
    },
  })
  return { pay, ran }
}

/** Two payments are approved, and the reply to that is lost: before the model, or with what it said. `cut`: chunks until the next one breaks off. */
async function loseReply(failing: boolean, cut = Number.POSITIVE_INFINITY) {
  const { pay, ran } = payments()
  let isFailing = failing
  const agent = createAgent({
    model: {
      id: 'test/model',
      async *stream({ messages }) {
        const isAnswered = messages.at(-1)?.role === 'tool'
        if (isAnswered && isFailing) throw new Error('down')
        if (isAnswered) for (const delta of ['Both', ' are', ' paid.']) yield { type: 'text-delta', delta }
        else
          for (const to of ['ann', 'bob'])
            yield { type: 'tool-call', id: to, name: 'pay', arguments: JSON.stringify({ to }) }
        yield { type: 'finish', reason: isAnswered ? 'stop' : 'tool_calls' }
      },
    },
    tools: [pay],
    threads: memoryThreads(),
    approvals: { secret: 'only for this test, 32 bytes long!', ledger: memoryLedger() },
    warn: () => {},
    onError: () => {},
  })
  const context = { subject: 'paying' }
  let requests = 0
  const fetch: typeof globalThis.fetch = async (url, init) => {
    const request = new Request(new URL(String(url), 'http://localhost/'), init)
    if (request.method === 'GET') return resumeAiSdkChat(agent, request, { context })
    const response = await handleAiSdkChat(agent, request, { context, goOnFor: 1000 })
    if (++requests === 1) return response
    const text = await response.text()
    isFailing = false
    if (requests === 2) throw new TypeError('lost')
    const chunks = text.split(/(?<=\n\n)/)
    let at = 0
    const body = new ReadableStream<string>({
      pull(controller) {
        const chunk = chunks[at]
        if (at++ === cut) controller.error(new TypeError('cut'))
        else if (chunk === undefined) controller.close()
        else controller.enqueue(chunk)
      },
    }).pipeThrough(new TextEncoderStream())
    return new Response(body, response)
  }
  const connection = reconnecting(aiSdk({ fetch, resume: 'rest' }), { delay: 1 })
  const client = new ChatClient({ threadId: 't', connection, onError: () => {} })
  onTestFinished(() => client.dispose())
  await client.sendMessage('go')
  const asked = client.getSnapshot().pendingApprovals
  await client.addToolApprovalResponses(
    asked.flatMap(({ approval }) => (approval ? { id: approval.id, approved: true } : [])),
  )
  expect(client.getSnapshot().status).toBe('error')
  await client.retry()
  const parts = client.getSnapshot().messages.flatMap((message) => message.parts)
  const shown = parts.flatMap((part) =>
    part.type === 'tool-call' ? [part.state, part.output] : part.type === 'text' ? part.text : [],
  )
  return { shown, ran }
}

test.each([true, false])(
  'a page whose reply was lost gets what the server has kept of it when it asks again (the model failed: %s)',
  async (failing) => {
    const { shown, ran } = await loseReply(failing)
    expect(shown).toEqual(['go', 'complete', 'ann', 'complete', 'bob', 'Both are paid.'])
    expect(ran.toSorted()).toEqual(['ann', 'bob'])
  },
)

// What the page lacked of the reply is one write of the server: the start and two results.
test.each([3, 4, 5, 6, 7, 8, 9])(
  'that reply is resumed where it breaks off, after %d chunks',
  async (cut) => {
    const { shown } = await loseReply(true, cut)
    expect(shown).toEqual(['go', 'complete', 'ann', 'complete', 'bob', 'Both are paid.'])
  },
)

/** One payment is approved after the other. The reply to request `lost` breaks off after `cut` chunks; the page sends again what failed. */
async function payTwice(lost: number, cut: number, resume?: 'rest') {
  const { pay, ran } = payments()
  const agent = createAgent({
    model: {
      id: 'test/model',
      async *stream({ messages }) {
        const to = ['ann', 'bob'][messages.filter(({ role }) => role === 'tool').length]
        if (to === undefined) yield { type: 'text-delta', delta: 'Both are paid.' }
        else
          yield {
            type: 'tool-call',
            id: to,
            name: 'pay',
            arguments: JSON.stringify({ to }),
            signature: 'thought',
          }
        yield { type: 'finish', reason: to === undefined ? 'stop' : 'tool_calls' }
      },
    },
    tools: [pay],
    threads: memoryThreads(),
    approvals: { secret: 'only for this test, 32 bytes long!', ledger: memoryLedger() },
  })
  const context = { subject: 'paying twice' }
  let requests = 0
  const fetch: typeof globalThis.fetch = async (url, init) => {
    const request = new Request(new URL(String(url), 'http://localhost/'), init)
    if (request.method === 'GET') return resumeAiSdkChat(agent, request, { context })
    const response = await handleAiSdkChat(agent, request, { context, goOnFor: 1000 })
    const text = await response.text()
    if (++requests !== lost) return new Response(text, response)
    const chunks = text.split(/(?<=\n\n)/)
    const body = new ReadableStream<string>({
      pull(controller) {
        const chunk = chunks.shift()
        if (cut-- > 0 && chunk !== undefined) controller.enqueue(chunk)
        else controller.error(new TypeError('cut'))
      },
    }).pipeThrough(new TextEncoderStream())
    return new Response(body, response)
  }
  const client = new ChatClient({ threadId: 't', connection: aiSdk({ fetch, resume }), onError: () => {} })
  onTestFinished(() => client.dispose())
  await client.sendMessage('go')
  for (let at = 0; at < 9 && client.getSnapshot().status !== 'ready'; at++) {
    const asked = client.getSnapshot().pendingApprovals.flatMap(({ approval }) => approval ?? [])
    if (client.getSnapshot().status === 'error') await client.retry()
    else await client.addToolApprovalResponses(asked.map(({ id }) => ({ id, approved: true })))
  }
  const parts = client.getSnapshot().messages.flatMap((message) => message.parts)
  const shown = parts.flatMap((part) =>
    part.type === 'tool-call' ? [part.state, part.input] : part.type === 'text' ? part.text : [],
  )
  // Where the page has the results but not what the model said, the model is asked again and says it again.
  return { shown: shown.filter((one, at) => one !== shown[at - 1]), ran }
}

const paid = {
  shown: ['go', 'complete', { to: 'ann' }, 'complete', { to: 'bob' }, 'Both are paid.'],
  ran: ['ann', 'bob'],
}

test('a call that has a signature is shown with its arguments, and its approval counts', async () => {
  expect(await payTwice(0, 0)).toEqual(paid)
})

test.each([undefined, 'rest'] as const)(
  'wherever a reply breaks off, the page asks again and gets the rest, with its approval requests (resume: %s)',
  async (resume) => {
    const breaks = [1, 2, 3].flatMap((lost) => Array.from({ length: 9 }, (_, cut) => [lost, cut] as const))
    for (const [lost, cut] of breaks)
      expect([lost, cut, await payTwice(lost, cut, resume)]).toEqual([lost, cut, paid])
  },
)

test('a client tool that has run is not handed out again to a page that resumes the reply', async () => {
  const here = toolDefinition({ name: 'here', description: 'Where.', input: z.object({}) })
  const agent = createAgent({
    model: {
      id: 'test/model',
      async *stream({ messages }) {
        const isAnswered = messages.at(-1)?.role === 'tool'
        if (isAnswered) yield { type: 'text-delta', delta: 'You are here.' }
        else yield { type: 'tool-call', id: 'c1', name: 'here', arguments: '{}' }
        yield { type: 'finish', reason: isAnswered ? 'stop' : 'tool_calls' }
      },
    },
    tools: [here.client(() => 'in the page')],
    threads: memoryThreads(),
    approvals: { secret: 'only for this test, 32 bytes long!', ledger: memoryLedger() },
  })
  const context = { subject: 'reloading' }
  const post = async (messages: readonly unknown[]) => {
    const body = JSON.stringify({ id: 't', messages })
    const headers = { 'content-type': 'application/json' }
    const request = new Request('http://localhost/api/chat', { method: 'POST', headers, body })
    return (await handleAiSdkChat(agent, request, { context, goOnFor: 1000 })).body?.getReader()
  }
  const asked = await post([{ id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Where am I?' }] }])
  while ((await asked?.read())?.done === false);
  const page = await loadAiSdkChat(agent, { ...context, chatId: 't' })
  const parts = page[1]?.parts.map((part) => ({ ...part, state: 'output-available', output: 'Berlin' }))
  const answered = await post([page[0], { ...page[1], parts }])
  await answered?.read()
  const again = await resumeAiSdkChat(agent, new Request('http://localhost/t/stream'), { context })
  const chunks = (await again.text()).split('\n\n').filter((chunk) => chunk.includes('"c1"'))
  const types = chunks.map((chunk) => JSON.parse(chunk.slice('data: '.length)).type)
  expect(types).toEqual(['tool-input-start', 'tool-input-delta', 'tool-output-available'])
  await answered?.cancel()
})

/** The route of an agent that keeps conversations and asks before it pays; `send` is what a page sends, and returns the chunks of the reply. */
function paymentRoute() {
  const agent = createAgent({
    model: {
      id: 'test/model',
      async *stream({ messages }) {
        const to = `payee ${messages.length}`
        yield { type: 'text-delta', delta: 'One moment.' }
        yield { type: 'tool-call', id: 'c1', name: 'pay', arguments: JSON.stringify({ to }) }
        yield { type: 'finish', reason: 'tool_calls' }
      },
    },
    tools: [payments().pay],
    threads: memoryThreads(),
    approvals: { secret: 'only for this test, 32 bytes long!', ledger: memoryLedger() },
  })
  const context = { subject: 'ada' }
  const load = () => loadAiSdkChat(agent, { ...context, chatId: 't' })
  const send = async (body: unknown): Promise<{ type: string; [field: string]: unknown }[]> => {
    const headers = { 'content-type': 'application/json' }
    const request = new Request('http://localhost/', { method: 'POST', headers, body: JSON.stringify(body) })
    const text = await (await handleAiSdkChat(agent, request, { context })).text()
    return [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => JSON.parse(data ?? ''))
  }
  return { load, send }
}

test('a page that has changed the text of a reply that broke off still gets its approval request, with the arguments', async () => {
  const { send } = paymentRoute()
  const asked = { id: 'u', role: 'user', parts: [{ type: 'text', text: 'go' }] }
  await send({ id: 't', messages: [asked] })
  const parts = [{ type: 'step-start' }, { type: 'text', text: '<p>One' }]
  const chunks = await send({ id: 't', messages: [asked, { id: 'reply_u', role: 'assistant', parts }] })
  expect(chunks).toContainEqual(
    expect.objectContaining({ type: 'tool-input-delta', inputTextDelta: '{"to":"payee 1"}' }),
  )
  expect(chunks).toContainEqual(expect.objectContaining({ type: 'tool-approval-request', toolCallId: 'c1' }))
})

test('an approval is not asked for a call that the page shows without its arguments', async () => {
  async function* events() {
    const interrupt = { id: 'a1', reason: 'tool_call', toolCallId: 'c1' }
    const outcome = { type: 'interrupt' as const, interrupts: [interrupt] }
    yield { type: 'RUN_STARTED' as const, threadId: 't', runId: 'r' }
    yield { type: 'RUN_FINISHED' as const, threadId: 't', runId: 'r', outcome }
  }
  const shown = async (state: 'input-streaming' | 'input-available') => {
    const parts = [{ type: 'tool-pay' as const, toolCallId: 'c1', state }]
    return toAiSdkResponse(events(), { continued: { id: 'reply', role: 'assistant', parts } }).text()
  }
  expect(await shown('input-available')).toContain('tool-approval-request')
  expect(await shown('input-streaming')).not.toContain('tool-approval-request')
})

test('an answer for a call that an edit on another page has replaced ends the call on its page, with the reason', async () => {
  const { load, send } = paymentRoute()
  const asked = { id: 'u', role: 'user', parts: [{ type: 'text', text: 'go' }] }
  await send({ id: 't', messages: [asked] })
  const page = (await load()).map((message) => ({
    ...message,
    parts: message.parts.map((part) =>
      'approval' in part && typeof part.approval === 'object'
        ? { ...part, state: 'approval-responded', approval: { ...part.approval, approved: true } }
        : part,
    ),
  }))
  await send({ id: 't', messageId: 'u', messages: [{ ...asked, parts: [{ type: 'text', text: 'other' }] }] })
  const chunks = await send({ id: 't', messages: page })
  const errorText = 'This conversation holds no call that the answer is for.'
  expect(chunks).toContainEqual({ type: 'tool-output-error', toolCallId: 'c1', errorText })
})

test('a run that is stopped behind an approval request ends with the step of that call: otherwise its answer would not be sent', async () => {
  async function* events() {
    const ids = { threadId: 't', runId: 'r' }
    yield { type: 'RUN_STARTED' as const, ...ids }
    yield { type: 'TOOL_CALL_START' as const, toolCallId: 'c1', toolCallName: 'pay', parentMessageId: 'm' }
    yield { type: 'TOOL_CALL_END' as const, toolCallId: 'c1' }
    yield {
      type: 'CUSTOM' as const,
      name: 'approval-requested',
      value: { toolCallId: 'c1', approval: { id: 'a1' } },
    }
    yield { type: 'RUN_FINISHED' as const, ...ids, outcome: { type: 'cancelled' as const } }
  }
  const text = await toAiSdkResponse(events()).text()
  expect(text).toContain('tool-approval-request')
  expect(text.match(/start-step/g)).toHaveLength(1)
})
