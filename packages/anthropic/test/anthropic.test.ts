import { anthropic } from '@countersign/anthropic'
import { CountersignError } from '@countersign/core'
import type { ModelEvent, ModelMessage, ModelRequest } from '@countersign/server'
import { expect, test } from 'vitest'

interface Answer {
  readonly events?: readonly object[]
  readonly body?: object
  readonly status?: number
  readonly headers?: Record<string, string>
}

type Options = Partial<Parameters<typeof anthropic>[0]>

/** A model whose provider answers with this, and what it was asked. */
function answering({ events, body, status = 200, headers = {} }: Answer, options: Options = {}) {
  const asked: { body: Record<string, unknown>; headers: Headers }[] = []
  const text =
    events === undefined
      ? JSON.stringify(body)
      : events
          .map((event) => `event: ${'type' in event ? event.type : ''}\ndata: ${JSON.stringify(event)}\n\n`)
          .join('')
  const type = events === undefined ? 'application/json' : 'text/event-stream'
  const fake = async (_: string | URL | Request, init?: RequestInit) => {
    asked.push({ body: JSON.parse(String(init?.body)), headers: new Headers(init?.headers) })
    return new Response(text, { status, headers: { 'content-type': type, ...headers } })
  }
  const sdk = { fetch: fake, maxRetries: 0 }
  return { asked, model: anthropic({ model: 'test-model', apiKey: 'k', options: sdk, ...options }) }
}

async function listen({ model }: ReturnType<typeof answering>, request: Partial<ModelRequest> = {}) {
  const events: ModelEvent[] = []
  const asked = { messages: [user('go')], tools: [], ...request }
  try {
    for await (const event of model.stream(asked, { signal: new AbortController().signal }))
      events.push(event)
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error
    return { events, error }
  }
  return { events, error: undefined }
}

const user = (text: string): ModelMessage => ({ role: 'user', content: [{ type: 'text', text }] })

const start = { type: 'message_start', message: { id: 'msg_1', model: 'm', usage: { input_tokens: 1 } } }

function stopped(reason: string) {
  return [
    { type: 'message_delta', delta: { stop_reason: reason }, usage: { output_tokens: 2 } },
    { type: 'message_stop' },
  ]
}

function block(index: number, begun: object, ...deltas: object[]) {
  return [
    { type: 'content_block_start', index, content_block: begun },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ]
}

const said = [
  start,
  ...block(0, { type: 'text', text: '' }, { type: 'text_delta', text: 'ok' }),
  ...stopped('end_turn'),
]

test('interleaved thinking goes back in its order, each block with its own signature', async () => {
  const provider = answering({ events: said })
  await listen(provider, {
    messages: [
      user('go'),
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'one', signature: 's1', metadata: { type: 'thinking' } },
          { type: 'text', text: 'Let me look.' },
          { type: 'reasoning', text: '', signature: 's2', metadata: { type: 'redacted_thinking' } },
          { type: 'tool-call', id: 'c1', name: 'look', arguments: '{"a":1}', metadata: { type: 'tool_use' } },
        ],
      },
      {
        role: 'tool',
        content: [
          {
            type: 'tool-result',
            toolCallId: 'c1',
            toolName: 'look',
            outcome: { kind: 'denied', reason: 'no' },
          },
        ],
      },
      user('and?'),
    ],
  })
  expect(provider.asked[0]?.body.messages).toEqual([
    { role: 'user', content: [{ type: 'text', text: 'go' }] },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'one', signature: 's1' },
        { type: 'text', text: 'Let me look.' },
        { type: 'redacted_thinking', data: 's2' },
        { type: 'tool_use', id: 'c1', name: 'look', input: { a: 1 } },
      ],
    },
    {
      role: 'user',
      content: [
        {
          type: 'tool_result',
          tool_use_id: 'c1',
          content: '{"kind":"denied","reason":"no"}',
          is_error: true,
        },
        { type: 'text', text: 'and?' },
      ],
    },
  ])
})

test('S0.64 what other providers thought, ran and asked about is left out without a word', async () => {
  const provider = answering({ events: said })
  const { error } = await listen(provider, {
    messages: [
      user('go'),
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'theirs', signature: 'theirs' },
          {
            type: 'tool-call',
            id: 'mcp_1',
            name: 'search',
            arguments: '{}',
            providerExecuted: true,
            approval: { id: 'mcpr_1', state: 'requested' },
          },
        ],
      },
      {
        role: 'tool',
        content: [{ type: 'approval-response', approvalId: 'mcpr_1', toolCallId: 'mcp_1', approved: true }],
      },
    ],
  })
  expect(error).toBeUndefined()
  expect(provider.asked[0]?.body.messages).toEqual([
    { role: 'user', content: [{ type: 'text', text: 'go' }] },
  ])
})

test('images and documents go in, what the provider cannot take is named', async () => {
  const provider = answering({ events: said })
  const data = (mimeType: string, value: string) => ({ type: 'data' as const, mimeType, value })
  await listen(provider, {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'file', media: 'image', source: data('image/png', 'AAAA') },
          { type: 'file', media: 'image', source: { type: 'url', value: 'https://example.org/a.png' } },
          { type: 'file', media: 'document', source: data('application/pdf', 'BBBB') },
          { type: 'file', media: 'document', source: data('text/plain', btoa('hi')) },
          { type: 'file', media: 'document', source: { type: 'file', value: 'file_1' } },
        ],
      },
    ],
  })
  expect(provider.asked[0]?.body.messages).toEqual([
    {
      role: 'user',
      content: [
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
        { type: 'image', source: { type: 'url', url: 'https://example.org/a.png' } },
        { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'BBBB' } },
        { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'hi' } },
        { type: 'document', source: { type: 'file', file_id: 'file_1' } },
      ],
    },
  ])
  const sound = { type: 'file' as const, media: 'audio' as const, source: data('audio/wav', 'AAAA') }
  const { error } = await listen(provider, { messages: [{ role: 'user', content: [sound] }] })
  expect(error?.code).toBe('invalid-argument')
})

test('the system, the tools and the parameters of the application are in the request', async () => {
  const format = { type: 'json_schema' as const, schema: { type: 'object' } }
  const provider = answering(
    { events: said },
    {
      params: {
        thinking: { type: 'enabled', budget_tokens: 1024 },
        output_config: { format },
        tools: [{ type: 'web_search_20250305', name: 'web_search' }],
      },
    },
  )
  await listen(provider, {
    system: 'Be brief.',
    messages: [{ role: 'system', content: 'Be kind.' }, user('go')],
    tools: [{ name: 'look', description: 'Looks.', parameters: { properties: {} } }],
  })
  expect(provider.asked[0]?.body).toMatchObject({
    model: 'test-model',
    stream: true,
    max_tokens: 8192 + 1024,
    system: 'Be brief.\n\nBe kind.',
    output_config: { format },
    tools: [
      { name: 'look', description: 'Looks.', input_schema: { type: 'object', properties: {} } },
      { type: 'web_search_20250305', name: 'web_search' },
    ],
  })
})

test('T31 a structured reply is asked for as output_config.format, in the form that the API takes', async () => {
  const output = {
    type: 'object',
    properties: { city: { type: 'string', minLength: 1 } },
    required: ['city'],
  }
  const provider = answering({ events: said }, { params: { output_config: { effort: 'low' } } })
  await listen(provider, { output })
  expect(provider.asked[0]?.body).toMatchObject({
    output_config: {
      effort: 'low',
      format: {
        type: 'json_schema',
        schema: {
          type: 'object',
          properties: { city: { type: 'string', description: '{minLength: 1}' } },
          required: ['city'],
          additionalProperties: false,
        },
      },
    },
  })
})

test('features in beta are asked for where the application says so', async () => {
  const provider = answering({ events: said }, { beta: true, params: { betas: ['mcp-client-2025-11-20'] } })
  await listen(provider)
  expect(provider.asked[0]?.headers.get('anthropic-beta')).toContain('mcp-client-2025-11-20')
})

test('a call that the answer was cut in never ends, also where its block was closed', async () => {
  const call = block(
    0,
    { type: 'tool_use', id: 'c1', name: 'wipe', input: {} },
    { type: 'input_json_delta', partial_json: '' },
  )
  for (const reason of ['max_tokens', 'model_context_window_exceeded', 'refusal']) {
    const { events } = await listen(answering({ events: [start, ...call, ...stopped(reason)] }))
    expect(events.map(({ type }) => type)).not.toContain('tool-call-end')
    expect(events.at(-1)).toEqual({
      type: 'finish',
      reason: reason === 'refusal' ? 'content_filter' : 'length',
    })
  }
  const { events } = await listen(answering({ events: [start, ...call, ...stopped('tool_use')] }))
  expect(events.map(({ type }) => type)).toContain('tool-call-end')
})

test('usage counts what was read from a cache as input', async () => {
  const usage = {
    input_tokens: 3,
    cache_read_input_tokens: 10,
    cache_creation_input_tokens: 5,
    output_tokens: 2,
  }
  const { events } = await listen(
    answering({
      events: [
        { type: 'message_start', message: { id: 'msg_1', model: 'm', usage } },
        { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 7 } },
        { type: 'message_stop' },
      ],
    }),
  )
  expect(events.find(({ type }) => type === 'usage')).toEqual({
    type: 'usage',
    usage: { inputTokens: 18, outputTokens: 7, cachedInputTokens: 10, cacheWriteInputTokens: 5 },
  })
})

test('a whole answer says what a stream says', async () => {
  const content = [
    { type: 'thinking', thinking: 'hm', signature: 's1' },
    { type: 'redacted_thinking', data: 'd' },
    {
      type: 'text',
      text: 'Looking.',
      citations: [{ type: 'char_location', cited_text: 'x', document_title: 'D' }],
    },
    { type: 'server_tool_use', id: 'srv_1', name: 'web_search', input: { query: 'q' } },
    { type: 'web_search_tool_result', tool_use_id: 'srv_1', content: [] },
    { type: 'tool_use', id: 'c1', name: 'look', input: { a: 1 } },
    { type: 'tool_use', id: 'c2', name: 'now', input: {} },
  ]
  const usage = { input_tokens: 1, output_tokens: 2 }
  const body = { id: 'msg_1', model: 'm', content, stop_reason: 'tool_use', usage }
  const { events } = await listen(answering({ body }, { stream: false }))
  const about = content
    .slice(2)
    .flatMap((one, index) =>
      one.type === 'text'
        ? block(
            index + 2,
            { type: 'text', text: '' },
            { type: 'citations_delta', citation: one.citations?.[0] },
            { type: 'text_delta', text: one.text },
          )
        : block(index + 2, one),
    )
  const streamed = await listen(
    answering({
      events: [
        { ...start, message: { ...start.message, usage } },
        ...block(
          0,
          { type: 'thinking', thinking: '', signature: '' },
          { type: 'thinking_delta', thinking: 'hm' },
          { type: 'signature_delta', signature: 's1' },
        ),
        ...block(1, { type: 'redacted_thinking', data: 'd' }),
        ...about,
        ...stopped('tool_use'),
      ],
    }),
  )
  expect(events).toEqual(streamed.events)
  expect(events).toContainEqual({ type: 'tool-call-delta', id: 'c1', delta: '{"a":1}' })
})

test('errors are typed: code, status, whether and when to try again', async () => {
  const error = { type: 'rate_limit_error', message: 'Slow down.' }
  const limited = await listen(
    answering({ body: { type: 'error', error }, status: 429, headers: { 'retry-after': '7' } }),
  )
  expect(limited.error?.data).toMatchObject({
    provider: 'anthropic',
    code: 'rate_limit_error',
    message: 'Slow down.',
    status: 429,
    retryable: true,
    retryAfter: 7,
  })
  const broken = await listen(
    answering({
      events: [start, { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }],
    }),
  )
  expect(broken.error?.data).toMatchObject({
    code: 'overloaded_error',
    message: 'Overloaded',
    retryable: true,
  })
  const cut = await listen(answering({ events: said.slice(0, -1) }))
  expect(cut.error?.data).toMatchObject({ code: 'truncated-stream', retryable: true })
})

test('a call of another model goes along, whatever its id and its arguments are', async () => {
  const provider = answering({ events: said })
  await listen(provider, {
    messages: [
      user('go'),
      {
        role: 'assistant',
        content: [{ type: 'tool-call', id: 'functions.look:0', name: 'look', arguments: '{"a":' }],
      },
      {
        role: 'tool',
        content: [
          {
            type: 'tool-result',
            toolCallId: 'functions.look:0',
            toolName: 'look',
            outcome: { kind: 'execution_error', reason: 'no JSON' },
          },
        ],
      },
    ],
  })
  expect(provider.asked[0]?.body.messages).toMatchObject([
    {},
    { content: [{ type: 'tool_use', id: 'functions_look_0', input: { invalid: '{"a":' } }] },
    { content: [{ type: 'tool_result', tool_use_id: 'functions_look_0', is_error: true }] },
  ])
})

test('a model must be named', () => {
  expect(() => anthropic({ model: '' })).toThrow(/model is empty/)
})
