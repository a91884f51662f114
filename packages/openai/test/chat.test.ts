import { type ChatOptions, openai } from '@countersign/openai'
import type { ModelMessage } from '@countersign/server'
import { expect, test } from 'vitest'
import { answering, chunk, collect, saying, sse } from './server.js'

function chat(fetch: ReturnType<typeof answering>['fetch'], more: Partial<ChatOptions> = {}) {
  return openai({
    api: 'chat',
    provider: 'local',
    model: 'm',
    apiKey: 'none',
    baseURL: 'http://local.test/v1',
    options: { fetch },
    ...more,
  })
}

/** The calls that come of these deltas, each with its arguments. */
async function callsOf(...deltas: readonly object[]) {
  const server = answering(() =>
    sse(...deltas.map((delta) => chunk({ tool_calls: [delta] })), chunk({}, 'stop')),
  )
  const events = await collect(chat(server.fetch), saying())
  expect(events.at(-1)).toEqual({ type: 'finish', reason: 'tool_calls' })
  return events.flatMap((event) =>
    event.type === 'tool-call-start'
      ? [
          [
            event.id,
            event.name,
            events
              .map((other) => (other.type === 'tool-call-delta' && other.id === event.id ? other.delta : ''))
              .join(''),
          ],
        ]
      : [],
  )
}

const part = (name: string | undefined, given: unknown, more: object = {}) => ({
  function: { ...(name !== undefined && { name }), arguments: given },
  ...more,
})

test('calls are told apart however a server names them', async () => {
  expect(
    await callsOf(
      part('a', '', { index: 0, id: 'x' }),
      part('b', '', { index: 1, id: 'y' }),
      part(undefined, '{"i":', { index: 0 }),
      part(undefined, '2}', { index: 1 }),
      part(undefined, '1}', { index: 0 }),
    ),
  ).toEqual([
    ['x', 'a', '{"i":1}'],
    ['y', 'b', '2}'],
  ])
  // every call under one number
  expect(
    await callsOf(part('a', '{}', { index: 0, id: 'x' }), part('b', '{}', { index: 0, id: 'y' })),
  ).toEqual([
    ['x', 'a', '{}'],
    ['y', 'b', '{}'],
  ])
  // id and name in every delta
  expect(await callsOf(part('a', '{', { index: 0, id: 'x' }), part('a', '}', { index: 0, id: 'x' }))).toEqual(
    [['x', 'a', '{}']],
  )
  // neither numbers nor ids
  expect(await callsOf(part('a', '{}'), part('b', '{'), part(undefined, '}'))).toEqual([
    ['call_0', 'a', '{}'],
    ['call_1', 'b', '{}'],
  ])
  // arguments as an object
  expect(await callsOf(part('a', { x: 1 }, { index: 0, id: '' }))).toEqual([['call_0', 'a', '{"x":1}']])
})

test('a call goes on until its arguments are a whole object, however often its name is repeated', async () => {
  const whole = ' {"a":"}\\"","b\\\\":{"c":[{}]}}'
  const split = [...whole].map((piece) => part('a', piece, { index: 0 }))
  expect(await callsOf(...split, part('a', '\n', { index: 0 }))).toEqual([
    ['call_0', 'a', whole],
    ['call_1', 'a', '\n'],
  ])
  for (const none of ['[{}]', '{x}', '{}{}', '1', '"{}"'])
    expect(await callsOf(part('a', none, { index: 0 }), part('a', ' ', { index: 0 }))).toEqual([
      ['call_0', 'a', `${none} `],
    ])
})

test('a call that was cut off within its arguments stays open', async () => {
  const begun = part('a', '{"text":"onc', { index: 0, id: 'x' })
  const server = answering(() => sse(chunk({ tool_calls: [begun] }), chunk({}, 'length')))
  const events = await collect(chat(server.fetch), saying())
  expect(events.map(({ type }) => type)).not.toContain('tool-call-end')
  expect(events.at(-1)).toEqual({ type: 'finish', reason: 'length' })
})

test('servers that refuse stream_options are not sent any, all others count', async () => {
  const server = answering(() => sse(chunk({ content: 'ok' }, 'stop')))
  await collect(chat(server.fetch), saying())
  await collect(chat(server.fetch, { params: { stream_options: null } }), saying())
  expect(server.bodies.map((body) => body.stream_options)).toEqual([{ include_usage: true }, undefined])
})

const turn = (metadata: Record<string, unknown>): ModelMessage[] => [
  {
    role: 'assistant',
    content: [
      { type: 'reasoning', text: 'hm', metadata },
      { type: 'tool-call', id: 'c1', name: 'look', arguments: '' },
    ],
  },
  {
    role: 'tool',
    content: [
      { type: 'tool-result', toolCallId: 'c1', toolName: 'look', outcome: { kind: 'ok', value: 'x' } },
    ],
  },
]

const question: ModelMessage = { role: 'user', content: [{ type: 'text', text: 'go' }] }

async function messagesOf(messages: readonly ModelMessage[]) {
  const server = answering(() => sse(chunk({ content: 'ok' }, 'stop')))
  await collect(chat(server.fetch), { messages, tools: [] })
  const sent = server.bodies[0]?.messages
  return Array.isArray(sent) ? sent : []
}

test('thoughts go back under the field they came in while the model works on one question, signed ones always', async () => {
  for (const field of ['reasoning', 'reasoning_content']) {
    const [, during] = await messagesOf([question, ...turn({ field })])
    expect(during).toMatchObject({ role: 'assistant', [field]: 'hm', tool_calls: [{ id: 'c1' }] })
    const [, after] = await messagesOf([question, ...turn({ field }), question])
    expect(after).not.toHaveProperty(field)
  }
  const [, thinking] = await messagesOf([question, ...turn({ field: 'thinking' })])
  expect(thinking.content).toEqual([{ type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] }])
  const details = [{ type: 'reasoning.text', text: 'hm', signature: 's', index: 0, extra: 1 }]
  const [, signed] = await messagesOf([question, ...turn({ field: 'reasoning', details }), question])
  expect(signed.reasoning_details).toEqual([{ type: 'reasoning.text', text: 'hm', signature: 's', index: 0 }])
})

test('a refusal is told as one and goes back as one', async () => {
  const server = answering(() => sse(chunk({ refusal: 'I will ' }), chunk({ refusal: 'not.' }, 'stop')))
  const events = await collect(chat(server.fetch), saying())
  expect(events.filter(({ type }) => type === 'text-delta')).toEqual([
    { type: 'text-delta', delta: 'I will ', refusal: true },
    { type: 'text-delta', delta: 'not.', refusal: true },
  ])
  expect(events.at(-1)).toEqual({ type: 'finish', reason: 'content_filter' })
  const end = events.find((event) => event.type === 'text-end')
  const [sent] = await messagesOf([
    {
      role: 'assistant',
      content: [{ type: 'text', text: 'I will not.', ...(end?.metadata && { metadata: end.metadata }) }],
    },
    question,
  ])
  expect(sent).toEqual({ role: 'assistant', content: null, refusal: 'I will not.' })
})

test('files in, and the plain text that simple servers want', async () => {
  const file = (media: 'image' | 'audio' | 'document', mimeType: string) =>
    ({ type: 'file', media, source: { type: 'data', value: 'AAAA', mimeType } }) as const
  const [plain, rich] = await messagesOf([
    question,
    {
      role: 'user',
      content: [file('image', 'image/png'), file('audio', 'audio/wav'), file('document', 'application/pdf')],
    },
  ])
  expect(plain).toEqual({ role: 'user', content: 'go' })
  expect(rich.content).toEqual([
    { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
    { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
    { type: 'file', file: { filename: 'file.pdf', file_data: 'data:application/pdf;base64,AAAA' } },
  ])
})

test('citations are sources', async () => {
  const citation = { url: 'https://x.test', title: 'X', start_index: 0, end_index: 2 }
  const annotations = [{ type: 'url_citation', url_citation: citation }]
  const server = answering(() => sse(chunk({ content: 'ok', annotations }, 'stop')))
  const events = await collect(chat(server.fetch), saying())
  expect(events.find(({ type }) => type === 'source')).toEqual({
    type: 'source',
    source: {
      id: 'chat_1-0',
      url: 'https://x.test',
      title: 'X',
      metadata: { type: 'url_citation', start_index: 0, end_index: 2 },
    },
  })
})

test('a whole answer says what a stream would have said', async () => {
  const message = {
    role: 'assistant',
    content: 'ok',
    reasoning_content: 'hm',
    tool_calls: [
      { id: 'x', type: 'function', function: { name: 'a', arguments: '{}' } },
      { id: 'y', type: 'function', function: { name: 'b', arguments: '{}' } },
    ],
  }
  const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 }
  const whole = {
    id: 'chat_1',
    model: 'm',
    choices: [{ index: 0, message, finish_reason: 'tool_calls' }],
    usage,
  }
  const server = answering(() => Response.json(whole))
  const events = await collect(chat(server.fetch, { stream: false }), saying())
  expect(server.bodies[0]?.stream).toBe(false)
  expect(events).toEqual([
    { type: 'metadata', metadata: { id: 'chat_1', model: 'm' } },
    { type: 'reasoning-delta', delta: 'hm' },
    { type: 'reasoning-end', metadata: { field: 'reasoning_content' } },
    { type: 'text-delta', delta: 'ok' },
    { type: 'tool-call-start', id: 'x', name: 'a' },
    { type: 'tool-call-delta', id: 'x', delta: '{}' },
    { type: 'tool-call-start', id: 'y', name: 'b' },
    { type: 'tool-call-delta', id: 'y', delta: '{}' },
    { type: 'tool-call-end', id: 'x' },
    { type: 'tool-call-end', id: 'y' },
    { type: 'metadata', metadata: { finishReason: 'tool_calls', usage } },
    { type: 'usage', usage: { inputTokens: 1, outputTokens: 2, totalTokens: 3 } },
    { type: 'finish', reason: 'tool_calls' },
  ])
})

test('T31 a structured reply is asked for as response_format, unless the application gives its own', async () => {
  const server = answering(() => sse(chunk({ content: '{}' }, 'stop')))
  const create = (params: object) =>
    openai({ api: 'chat', model: 'm', apiKey: 'key', options: { fetch: server.fetch }, params })
  const output = { type: 'object', properties: {} }
  await collect(create({}), { ...saying(), output })
  await collect(create({ response_format: { type: 'json_object' } }), { ...saying(), output })
  const schema = { ...output, additionalProperties: false, required: [] }
  expect(server.bodies.map(({ response_format }) => response_format)).toEqual([
    { type: 'json_schema', json_schema: { name: 'output', schema, strict: true } },
    { type: 'json_object' },
  ])
})
