import { ChatClient, type ChatClientOptions, previewView, type ToolCallPart } from '@countersign/client'
import { clientTool, isRecord } from '@countersign/core'
import { type LangGraphOptions, langGraph } from '@countersign/langgraph'
import { until } from '@countersign/testing'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'

type Sse = readonly [event: string, data: unknown]

const thread = '3f0f3a0e-8a3c-4c60-8a6e-0d1c3f2b4a55'
const step = { langgraph_checkpoint_ns: 'model:1' }
const text = (content: unknown, id = 'm1'): Sse => [
  'messages',
  [{ type: 'AIMessageChunk', id, content }, step],
]
const spoken = (content: unknown, more: object = {}, id = 'm1'): Sse => [
  'updates',
  { model: { messages: [{ type: 'ai', id, content, ...more }] } },
]
const call = (id: string, to: string) => ({ id, name: 'send_mail', args: { to } })
const asking = (value: unknown, id = 'i1'): Sse => ['updates', { __interrupt__: [{ id, value }] }]
const result = (toolCallId: string, content: string, status = 'success'): Sse => [
  'updates',
  {
    tools: { messages: [{ type: 'tool', id: `r-${toolCallId}`, tool_call_id: toolCallId, content, status }] },
  },
]

/** As LangChain for Python asks. */
const request = (to: string) => ({ name: 'send_mail', args: { to }, description: `Mail to ${to}` })
const review = (...allowed: string[]) => ({ action_name: 'send_mail', allowed_decisions: allowed })

interface Asked {
  readonly method: string
  readonly path: string
  readonly headers: unknown
  readonly body: Readonly<Record<string, unknown>> | undefined
}

/** A client whose requests end here: runs are answered with the next of these streams, `state` is what the server keeps. */
function chat(
  streams: readonly (readonly Sse[] | 'lost')[],
  options: Partial<LangGraphOptions> = {},
  { state, ...more }: Partial<ChatClientOptions> & { state?: unknown } = {},
) {
  const asked: Asked[] = []
  let runs = 0
  const fetch: typeof globalThis.fetch = async (url, { method = 'GET', headers, body } = {}) => {
    const path = String(url).replace('https://a.example', '')
    asked.push({ method, path, headers, body: typeof body === 'string' ? JSON.parse(body) : undefined })
    if (path.endsWith('/state')) return Response.json(state ?? {}, { status: state ? 200 : 404 })
    if (path.includes('/cancel')) return new Response(null, { status: 204 })
    const events = streams[runs++] ?? []
    if (events === 'lost') throw new TypeError('fetch failed')
    const sse = events.map(
      ([event, data], id) => `event: ${event}\r\ndata: ${JSON.stringify(data)}\r\nid: ${id}\r\n\r\n`,
    )
    return new Response(sse.join(''), {
      headers: { 'content-type': 'text/event-stream', 'content-location': `${path}/../run-${runs}` },
    })
  }
  const warnings: string[] = []
  const connection = langGraph({ apiUrl: 'https://a.example/', assistantId: 'agent', ...options, fetch })
  const client = new ChatClient({
    threadId: thread,
    onWarning: (one) => warnings.push(one),
    ...more,
    connection,
  })
  onTestFinished(client.dispose)
  const bodies = () =>
    asked.flatMap(({ path, body }) => (path.endsWith('/runs/stream') && body ? [body] : []))
  const calls = (): ToolCallPart[] =>
    client
      .getSnapshot()
      .messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'tool-call' ? [part] : [])))
  return { asked, bodies, calls, client, warnings }
}

test('a run is asked for as useStream asks, with the options of the body, and only with what is new', async () => {
  const { client, asked, bodies, warnings } = chat(
    [
      [text('Hel'), text('lo.'), spoken('Hello.')],
      [text('Again.', 'm2'), spoken('Again.', {}, 'm2')],
    ],
    { headers: { 'x-api-key': 'k' }, body: () => ({ context: { tenant: 'a' } }) },
    { headers: { 'x-b': '2' }, forwardedProps: { config: { recursion_limit: 5 } } },
  )
  await client.sendMessage('one')
  await client.sendMessage('two')
  expect(asked.map(({ method, path }) => [method, path])).toEqual([
    ['GET', `/threads/${thread}/state`], // another page may have begun the conversation
    ['POST', `/threads/${thread}/runs/stream`],
    ['POST', `/threads/${thread}/runs/stream`],
  ])
  expect(asked[1]?.headers).toMatchObject({ 'x-api-key': 'k', 'x-b': '2' })
  expect(bodies()[0]).toEqual({
    assistant_id: 'agent',
    context: { tenant: 'a' },
    config: { recursion_limit: 5 },
    input: { messages: [{ type: 'human', id: expect.any(String), content: 'one' }] },
    stream_mode: ['messages-tuple', 'updates'],
    stream_resumable: true,
    on_disconnect: 'continue',
    multitask_strategy: 'reject',
    if_not_exists: 'create',
  })
  expect(bodies()[1]?.input).toMatchObject({ messages: [{ content: 'two' }] })
  expect(client.getSnapshot().messages).toMatchObject([{}, { id: 'm1' }, {}, { id: 'm2' }])
  expect(warnings).toEqual([])
})

test('a page that knows only the id of a conversation reads it first: what waits there is closed before a message', async () => {
  const waiting = { action_requests: [request('ada')], review_configs: [review('approve', 'reject')] }
  const state = {
    values: {
      messages: [
        { id: 'u1', type: 'human', content: 'Mail to ada' },
        { id: 'm1', type: 'ai', content: '', tool_calls: [call('c1', 'ada')] },
      ],
    },
    next: ['model'],
    tasks: [{ interrupts: [{ id: 'i1', value: waiting }] }],
  }
  const { client, bodies, warnings } = chat(
    [[text('Hello.', 'm2'), spoken('Hello.', {}, 'm2')]],
    {},
    { state },
  )
  await client.sendMessage('Something else.')
  expect(bodies().map(({ input }) => input)).toMatchObject([
    {
      messages: [
        { type: 'tool', tool_call_id: 'c1' },
        { type: 'human', content: 'Something else.' },
      ],
    },
  ])
  expect(client.getSnapshot()).toMatchObject({ status: 'ready', messages: [{}, { id: 'm2' }] })
  expect(warnings).toEqual([])
})

test('an answer whose response was lost is never that to a second question about the same call', async () => {
  const made = { id: 'm1', type: 'ai', content: '', tool_calls: [call('c1', 'ada')] }
  const asked = (description: string) => ({
    action_requests: [{ ...request('ada'), description }],
    review_configs: [review('approve', 'reject')],
  })
  const state = {
    values: { messages: [made] },
    next: ['model'],
    tasks: [{ interrupts: [{ id: 'i1', value: asked('The auditor must agree') }] }],
  }
  const { client, bodies } = chat(
    [
      [spoken('', { tool_calls: [call('c1', 'ada')] }), asking(asked('Mail to ada'))],
      'lost',
      [result('c1', 'sent')],
    ],
    {},
    { state },
  )
  await client.sendMessage('one')
  await client.addToolApprovalResponse({ id: 'i1:c1', approved: true })
  await client.retry()
  const commands = () => bodies().flatMap(({ command }) => (command ? [command] : []))
  expect(commands()).toHaveLength(1)
  expect(client.getSnapshot().pendingApprovals).toMatchObject([
    { approval: { id: 'i1:c1', message: 'The auditor must agree' } },
  ])
  await client.addToolApprovalResponse({ id: 'i1:c1', approved: true })
  expect(commands()[1]).toEqual({ resume: { i1: { decisions: [{ type: 'approve' }] } } })
})

const again = [request('ada'), { ...request('bob'), description: 'The auditor must agree' }]
test.each([
  ['was asked anew', [request('ada'), request('bob')]],
  ['came later', [request('ada')]],
])('a request that %s is never answered with no because others beside it were approved', async (_, first) => {
  const made = [call('c1', 'ada'), call('c2', 'bob')]
  const asked = (action_requests: readonly object[]) => ({
    action_requests,
    review_configs: [review('approve', 'reject')],
  })
  const state = {
    values: { messages: [{ id: 'm1', type: 'ai', content: '', tool_calls: made }] },
    next: ['model'],
    tasks: [{ interrupts: [{ id: 'i1', value: asked(again) }] }],
  }
  const { client, bodies } = chat(
    [
      [spoken('', { tool_calls: made }), asking(asked(first))],
      'lost',
      [result('c1', 'sent'), result('c2', 'sent')],
    ],
    {},
    { state },
  )
  const commands = () => bodies().flatMap(({ command }) => (command ? [command] : []))
  const open = () => client.getSnapshot().pendingApprovals.map(({ approval }) => approval)
  const approveAll = () =>
    Promise.all(open().map(({ id }) => client.addToolApprovalResponse({ id, approved: true })))
  await client.sendMessage('one')
  await approveAll()
  await client.retry()
  expect(commands()).toHaveLength(1)
  expect(open().map(({ message }) => message)).toEqual(['Mail to ada', 'The auditor must agree'])
  await approveAll()
  expect(commands()[1]).toEqual({ resume: { i1: { decisions: [{ type: 'approve' }, { type: 'approve' }] } } })
})

test('a call that runs here never gets the result of an earlier one with its id', async () => {
  const handedOut = (n: number) => ({ id: 'f:0', name: 'locate', args: { n } })
  const ai = (n: number) => ({ id: `m${n}`, type: 'ai', content: '', tool_calls: [handedOut(n)] })
  const state = {
    values: { messages: [ai(1), { type: 'tool', id: 'r1', tool_call_id: 'f:0', content: 'Oslo' }, ai(2)] },
    next: ['tools'],
    tasks: [{ interrupts: [{ id: 'i2', value: { type: 'tool', toolCall: handedOut(2) } }] }],
  }
  const bodies: unknown[] = []
  const fetch: typeof globalThis.fetch = async (_, { body } = {}) => {
    if (body) bodies.push(body)
    return Response.json(state)
  }
  const connection = langGraph({ apiUrl: 'https://a.example', assistantId: 'agent', fetch })
  const of = (n: number) => ({
    id: `m${n}`,
    role: 'assistant' as const,
    toolCalls: [
      { id: 'f:0', type: 'function' as const, function: { name: 'locate', arguments: `{"n":${n}}` } },
    ],
  })
  const earlier = { id: 'r1', role: 'tool' as const, toolCallId: 'f:0', content: 'Oslo' }
  const tools = [{ name: 'locate', description: 'Where the person is.', parameters: {} }]
  const input = { threadId: thread, runId: 'r', messages: [of(1), earlier, of(2)], tools, context: [] }
  const events: unknown[] = []
  const connect = { signal: new AbortController().signal, headers: {}, messages: [] }
  for await (const batch of connection.connect(input, connect)) events.push(batch)
  expect(bodies).toEqual([])
  expect(events.flat().at(-1)).toMatchObject({ outcome: { pendingToolCallIds: ['f:0'] } })
})

test('V13 LangGraph has no place for a preview: one beside a request is left out, one in an interrupt of the graph reaches the page', async () => {
  const preview = { kind: 'diff', name: 'a.txt', before: 'one\n', after: 'two\n' }
  const { client, bodies, calls, warnings } = chat([
    [
      spoken('', { tool_calls: [call('c1', 'ada')] }),
      asking({
        action_requests: [{ ...request('ada'), preview }],
        review_configs: [review('approve', 'reject')],
      }),
    ],
    [result('c1', 'sent'), asking({ message: 'Write a.txt?', preview }, 'i2')],
    [spoken('Done.', {}, 'm2')],
  ])
  await client.sendMessage('mail ada')
  // Nothing would bind it to what the graph then does.
  expect(calls()[0]?.approval).not.toHaveProperty('preview')
  expect(calls()[0]?.approval?.message).toBe('Mail to ada')
  await client.addToolApprovalResponse({ id: 'i1:c1', approved: true })
  expect(bodies()[1]).toMatchObject({ command: { resume: { i1: { decisions: [{ type: 'approve' }] } } } })
  const [asked] = client.getSnapshot().interrupts
  const shown: unknown = asked?.metadata?.['langgraph:value']
  expect(shown).toEqual({ message: 'Write a.txt?', preview })
  const view = previewView(isRecord(shown) ? shown.preview : undefined)
  expect(view.total?.cells[0]?.text).toBe('1 line added, 1 line removed in a.txt')
  expect(warnings).toEqual([])
})

test('a thread id that is no UUID becomes the same UUID each time', async () => {
  const paths = await Promise.all(
    ['thread-1', 'thread-1', 'thread-2', thread.toUpperCase()].map(async (threadId) => {
      const { client, asked } = chat([[spoken('Hello.')]], {}, { threadId })
      await client.sendMessage('hello')
      return asked[0]?.path.split('/')[2]
    }),
  )
  expect(paths[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(paths[1]).toBe(paths[0])
  expect(paths[2]).not.toBe(paths[0])
  expect(paths[3]).toBe(thread)
})

test('what LangChain for Python asks is answered in its words, all decisions at once and in the order asked', async () => {
  const { client, bodies, calls, warnings } = chat([
    [
      spoken('', { tool_calls: [call('c1', 'ada'), call('c2', 'bob'), call('c3', 'cleo')] }),
      asking({
        action_requests: [request('ada'), request('bob'), request('cleo')],
        review_configs: [
          review('approve', 'edit', 'reject'),
          review('approve', 'reject'),
          review('approve', 'reject'),
        ],
      }),
    ],
    [
      result('c1', '{"to":"eve"}'),
      result('c2', 'no', 'error'),
      result('c3', 'sent'),
      spoken('Done.', {}, 'm2'),
    ],
  ])
  await client.sendMessage('mail them')
  expect(calls().map(({ approval }) => [approval?.message, approval?.allowEdits, approval?.options])).toEqual(
    [
      ['Mail to ada', true, ['deny', 'once']],
      ['Mail to bob', false, ['deny', 'once']],
      ['Mail to cleo', false, ['deny', 'once']],
    ],
  )
  const [first = '', second = '', third = ''] = calls().map(({ approval }) => approval?.id)
  void client.addToolApprovalResponse({ id: third, approved: true })
  void client.addToolApprovalResponse({ id: second, approved: false, reason: 'no' })
  expect(bodies()).toHaveLength(1)
  expect(await client.addToolApprovalResponse({ id: first, approved: true, input: { to: 'eve' } })).toEqual({
    status: 'sent',
  })
  expect(bodies()[1]?.command).toEqual({
    resume: {
      i1: {
        decisions: [
          { type: 'edit', edited_action: { name: 'send_mail', args: { to: 'eve' } } },
          { type: 'reject', message: 'no' },
          { type: 'approve' },
        ],
      },
    },
  })
  expect(bodies()[1]).not.toHaveProperty('input')
  expect(calls().map(({ state }) => state)).toEqual(['complete', 'denied', 'complete'])
  expect(warnings).toEqual([])
})

test('a question about other arguments than those that were shown cannot be answered', async () => {
  const args = '{"to":"ada"}'
  const tool_call_chunks = [{ index: 0, id: 'c1', name: 'send_mail', args }]
  const { client, bodies, calls } = chat([
    [
      ['messages', [{ type: 'AIMessageChunk', id: 'm1', content: '', tool_call_chunks }, step]],
      spoken('', { tool_calls: [call('c1', 'mallory')] }),
      asking({ action_requests: [request('mallory')], review_configs: [review('approve', 'reject')] }),
    ],
  ])
  await client.sendMessage('mail ada')
  expect(calls()).toMatchObject([{ input: { to: 'ada' }, approval: { problem: 'approval-changed' } }])
  expect(await client.addToolApprovalResponse({ id: 'i1:c1', approved: true })).toMatchObject({
    status: 'closed',
  })
  expect(bodies()).toHaveLength(1)
})

test('two calls that look the same are asked about one by one', async () => {
  const twice = {
    action_requests: [request('ada'), request('ada')],
    review_configs: [review('approve'), review('approve')],
  }
  const { client, calls } = chat([
    [spoken('', { tool_calls: [call('c1', 'ada'), call('c2', 'ada')] }), asking(twice)],
  ])
  await client.sendMessage('mail ada twice')
  expect(calls().map(({ approval }) => [approval?.id, approval?.options])).toEqual([
    ['i1:c1', ['once']],
    ['i1:c2', ['once']],
  ])
})

test('where only edits are allowed a plain yes is an edit without a change', async () => {
  const only = {
    actionRequests: [request('ada')],
    reviewConfigs: [{ actionName: 'send_mail', allowedDecisions: ['edit'] }],
  }
  const { client, bodies } = chat([
    [spoken('', { tool_calls: [call('c1', 'ada')] }), asking(only)],
    [result('c1', 'sent')],
  ])
  await client.sendMessage('mail ada')
  await client.addToolApprovalResponse({ id: 'i1:c1', approved: true })
  expect(bodies()[1]?.command).toEqual({
    resume: {
      i1: { decisions: [{ type: 'edit', editedAction: { name: 'send_mail', args: { to: 'ada' } } }] },
    },
  })
})

test('a request for decisions on calls that nobody made is no approval, but an interrupt with the request in it', async () => {
  const value = { action_requests: [request('mallory')], review_configs: [review('approve')] }
  const { client, bodies } = chat([[spoken('', { tool_calls: [call('c1', 'ada')] }), asking(value)], []])
  await client.sendMessage('mail ada')
  expect(client.getSnapshot().pendingApprovals).toEqual([])
  expect(client.getSnapshot().interrupts).toMatchObject([
    { id: 'i1', metadata: { 'langgraph:value': value } },
  ])
  await client.respondToInterrupt({ id: 'i1', payload: { decisions: [] } })
  expect(bodies()[1]?.command).toEqual({ resume: { i1: { decisions: [] } } })
})

test('several interrupts of one step are each answered by their id, once all are', async () => {
  const { client, bodies } = chat([
    [asking('First?', 'i1'), asking({ question: 'Second?' }, 'i2')],
    [spoken('Thanks.')],
  ])
  await client.sendMessage('go')
  expect(client.getSnapshot().interrupts.map(({ message }) => message)).toEqual(['First?', 'Second?'])
  void client.respondToInterrupt({ id: 'i2', payload: { b: 2 } })
  expect(bodies()).toHaveLength(1)
  await client.respondToInterrupt({ id: 'i1', cancel: true })
  expect(bodies()[1]?.command).toEqual({ resume: { i1: null, i2: { b: 2 } } })
})

test('a tool without an implementation runs here, and its result goes to its own interrupt', async () => {
  const locate = clientTool({
    name: 'get_location',
    description: 'Where the person is.',
    input: z.object({}),
    execute: () => ({ place: 'Oslo' }),
  })
  const made = { id: 'c1', name: 'get_location', args: {} }
  const { client, bodies, calls, warnings } = chat(
    [
      [spoken('', { tool_calls: [made] }), asking({ type: 'tool', toolCall: made })],
      [result('c1', '{"place":"Oslo"}'), spoken('You are in Oslo.', {}, 'm2')],
    ],
    {},
    { tools: [locate] },
  )
  await client.sendMessage('where am i')
  await until(client, ({ status }) => status === 'ready' && bodies().length === 2)
  expect(bodies()[1]?.command).toEqual({ resume: { i1: { place: 'Oslo' } } })
  expect(calls()).toMatchObject([{ state: 'complete', output: { place: 'Oslo' } }])
  expect(warnings).toEqual([])
})

test('arguments grow as they arrive, and thoughts come before what is said', async () => {
  const chunk = (more: object): Sse => [
    'messages',
    [{ type: 'AIMessageChunk', id: 'm1', content: [], ...more }, step],
  ]
  const args: string[] = []
  const { client, calls, warnings } = chat([
    [
      chunk({ content: [{ type: 'thinking', thinking: 'Hm.' }] }),
      chunk({ content: [{ type: 'text', text: 'I mail her.' }] }),
      chunk({ tool_call_chunks: [{ index: 1, id: 'c1', name: 'send_mail', args: '' }] }),
      chunk({ tool_call_chunks: [{ index: 1, id: null, name: null, args: '{"to":' }] }),
      chunk({ tool_call_chunks: [{ index: 1, args: '"ada"}' }] }),
      spoken([{ type: 'text', text: 'I mail her.' }], { tool_calls: [call('c1', 'ada')] }),
      result('c1', 'sent'),
    ],
  ])
  client.subscribe(() => args.push(...calls().map((one) => one.arguments)))
  await client.sendMessage('mail ada')
  expect(client.getSnapshot().messages.at(-1)?.parts).toMatchObject([
    { type: 'reasoning', text: 'Hm.' },
    { type: 'text', text: 'I mail her.' },
    { type: 'tool-call', input: { to: 'ada' }, state: 'complete', output: 'sent' },
    { type: 'tool-result' },
  ])
  expect(warnings).toEqual([])
})

test('a tool that failed is an error, a graph that failed is a failed run, and the next message finds out what is left', async () => {
  const { client, asked, calls } = chat(
    [
      [
        spoken('', { tool_calls: [call('c1', 'ada')] }),
        result('c1', 'No such address.', 'error'),
        ['error', { error: 'ValueError', message: 'Bad.' }],
      ],
      [spoken('Hello.', {}, 'm2')],
    ],
    {},
    { state: { values: { messages: [] }, next: ['model'], tasks: [] } },
  )
  expect(await client.sendMessage('mail ada')).toMatchObject({
    status: 'failed',
    error: { code: 'run-error', message: 'Bad.' },
  })
  expect(calls()).toMatchObject([{ state: 'error', error: { message: 'No such address.' } }])
  await client.sendMessage('hello')
  expect(asked.map(({ method, path }) => `${method} ${path.split('/').at(-1)}`)).toEqual([
    'GET state',
    'POST stream',
    'GET state',
    'POST stream',
  ])
})

test('a stream that ends within a step has broken off, and is joined where it stopped', async () => {
  const { client, asked } = chat([
    [['metadata', { run_id: 'run-9' }], text('Hel')],
    [text('lo.'), spoken('Hello.')],
  ])
  expect(await client.sendMessage('hello')).toMatchObject({
    status: 'failed',
    error: { code: 'truncated-stream' },
  })
  await client.retry()
  expect(asked.at(-1)).toMatchObject({
    method: 'GET',
    path: `/threads/${thread}/runs/run-9/stream`,
    headers: { 'last-event-id': '1' },
  })
  expect(client.getSnapshot()).toMatchObject({
    status: 'ready',
    messages: [{}, { parts: [{ text: 'Hello.' }] }],
  })
})

test('the state of the graph comes along where it is asked for, without what is told otherwise', async () => {
  const { client, bodies } = chat([[['values', { messages: [], todos: ['mail'] }], spoken('Hello.')]], {
    state: true,
  })
  await client.sendMessage('hello')
  expect(bodies()[0]?.stream_mode).toEqual(['messages-tuple', 'updates', 'values'])
  expect(client.getSnapshot().state).toEqual({ todos: ['mail'] })
})

test('F26 an id that a later message of the model uses again is a call of its own, in the same turn and in the next', async () => {
  const asks = (message: string, to: string, interrupt: string): Sse[] => [
    spoken('', { tool_calls: [call('x:0', to)] }, message),
    asking({ action_requests: [request(to)], review_configs: [review('approve', 'reject')] }, interrupt),
  ]
  const told = (message: string, id: string): Sse => [
    'updates',
    { tools: { messages: [{ type: 'tool', id, tool_call_id: 'x:0', content: message, status: 'success' }] } },
  ]
  const { client } = chat([
    asks('m1', 'ann', 'i1'),
    [told('one', 'r1'), ...asks('m2', 'bob', 'i2')],
    [told('two', 'r2'), spoken('Sent.', {}, 'm3')],
    asks('m4', 'cid', 'i3'),
  ])
  const waiting = () => client.getSnapshot().pendingApprovals.map(({ input }) => input)
  const approve = async () => {
    const id = client.getSnapshot().pendingApprovals[0]?.approval.id ?? ''
    await client.addToolApprovalResponse({ id, approved: true })
  }
  await client.sendMessage('go')
  expect(waiting()).toEqual([{ to: 'ann' }])
  await approve()
  expect(waiting()).toEqual([{ to: 'bob' }])
  await approve()
  await client.sendMessage('again')
  expect(waiting()).toEqual([{ to: 'cid' }])
  const outputs = client
    .getSnapshot()
    .messages.flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === 'tool-call' ? [part.output] : [])),
    )
  expect(outputs).toEqual(['one', 'two', undefined])
})
