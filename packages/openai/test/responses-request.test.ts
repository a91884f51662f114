import { openai, type ResponsesOptions } from '@countersign/openai'
import type { ModelMessage, ModelReasoning, ModelText, ModelToolCall } from '@countersign/server'
import { expect, test } from 'vitest'
import { answering, collect, completed, saying, sse } from './server.js'

/** The body that a conversation becomes. */
async function bodyOf(messages: readonly ModelMessage[], more: Partial<ResponsesOptions> = {}) {
  const server = answering(() => sse(completed()))
  const model = openai({ model: 'gpt-5', apiKey: 'key', options: { fetch: server.fetch }, ...more })
  await collect(model, saying(...messages))
  return server.bodies[0] ?? {}
}

async function inputOf(messages: readonly ModelMessage[], more: Partial<ResponsesOptions> = {}) {
  const { input } = await bodyOf(messages, more)
  return Array.isArray(input) ? input.slice(0, -1) : []
}

const thought = (itemId: string, text = '', signature?: string): ModelReasoning => ({
  type: 'reasoning',
  text,
  ...(signature !== undefined && { signature }),
  metadata: { itemId },
})
const text = (words: string, metadata?: Record<string, unknown>): ModelText => ({
  type: 'text',
  text: words,
  ...(metadata && { metadata }),
})
const call = (id: string, more: Partial<ModelToolCall> = {}): ModelToolCall => ({
  type: 'tool-call',
  id,
  name: 'look',
  arguments: '{}',
  ...more,
})
const assistant = (...content: readonly (ModelText | ModelReasoning | ModelToolCall)[]): ModelMessage => ({
  role: 'assistant',
  content,
})
const result = (toolCallId: string, value: unknown, metadata?: Record<string, unknown>): ModelMessage => ({
  role: 'tool',
  content: [
    {
      type: 'tool-result',
      toolCallId,
      toolName: 'look',
      outcome: { kind: 'ok', value },
      ...(metadata && { metadata }),
    },
  ],
})

test('images, documents and files in go as the API words them', async () => {
  const [message] = await inputOf([
    {
      role: 'user',
      content: [
        { type: 'file', media: 'image', source: { type: 'url', value: 'https://x.test/a.png' } },
        { type: 'file', media: 'image', source: { type: 'data', value: 'AAAA', mimeType: 'image/png' } },
        {
          type: 'file',
          media: 'document',
          source: { type: 'data', value: 'BBBB', mimeType: 'application/pdf' },
        },
        { type: 'file', media: 'document', source: { type: 'url', value: 'https://x.test/a.pdf' } },
        { type: 'file', media: 'document', source: { type: 'file', value: 'file-1' } },
        { type: 'file', media: 'image', source: { type: 'file', value: 'file-2' } },
      ],
    },
  ])
  expect(message.content).toEqual([
    { type: 'input_image', detail: 'auto', image_url: 'https://x.test/a.png' },
    { type: 'input_image', detail: 'auto', image_url: 'data:image/png;base64,AAAA' },
    { type: 'input_file', filename: 'file.pdf', file_data: 'data:application/pdf;base64,BBBB' },
    { type: 'input_file', file_url: 'https://x.test/a.pdf' },
    { type: 'input_file', file_id: 'file-1' },
    { type: 'input_image', detail: 'auto', file_id: 'file-2' },
  ])
})

test('a file that the API has no place for is an error that names the way out', async () => {
  const video: ModelMessage = {
    role: 'user',
    content: [{ type: 'file', media: 'video', source: { type: 'url', value: 'https://x.test/a.mp4' } }],
  }
  await expect(bodyOf([video])).rejects.toMatchObject({
    code: 'invalid-argument',
    message: expect.stringContaining('takes no video'),
  })
})

test('the instructions, the tools of the agent and those of the provider, and what else was asked for', async () => {
  const server = answering(() => sse(completed()))
  const format = { type: 'json_schema' as const, name: 'answer', schema: { type: 'object' } }
  const model = openai({
    model: 'gpt-5',
    apiKey: 'key',
    options: { fetch: server.fetch },
    params: {
      text: { format },
      store: false,
      tools: [
        { type: 'mcp', server_label: 'docs', server_url: 'https://x.test', require_approval: 'always' },
      ],
    },
  })
  const parameters = { type: 'object' as const, properties: {} }
  await collect(model, {
    ...saying(),
    system: 'Be brief.',
    tools: [{ name: 'look', description: 'Looks.', parameters }],
  })
  expect(server.bodies[0]).toMatchObject({
    model: 'gpt-5',
    instructions: 'Be brief.',
    stream: true,
    store: false,
    text: { format },
    tools: [
      { type: 'function', name: 'look', description: 'Looks.', parameters, strict: false },
      { type: 'mcp', server_label: 'docs' },
    ],
  })
})

test('the items of a step go back in the order in which they came', async () => {
  const items = await inputOf([
    assistant(
      thought('rs_1', 'First'),
      text('Looking.', { itemId: 'msg_1', phase: 'commentary' }),
      call('ws_1', {
        name: 'web_search_call',
        arguments: '{"type":"search","query":"x"}',
        providerExecuted: true,
        metadata: { type: 'web_search_call', itemId: 'ws_1' },
      }),
      thought('rs_2', 'Second', 'sealed'),
      call('call_1', { metadata: { itemId: 'fc_1' } }),
      text('No.', { itemId: 'msg_2', refusal: true }),
    ),
    {
      role: 'tool',
      content: [
        {
          type: 'tool-result',
          toolCallId: 'ws_1',
          toolName: 'web_search_call',
          outcome: { kind: 'ok', value: null },
        },
        {
          type: 'tool-result',
          toolCallId: 'call_1',
          toolName: 'look',
          outcome: { kind: 'denied', reason: 'not now' },
        },
      ],
    },
  ])
  expect(items).toEqual([
    { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'First' }] },
    {
      type: 'message',
      id: 'msg_1',
      role: 'assistant',
      status: 'completed',
      phase: 'commentary',
      content: [{ type: 'output_text', text: 'Looking.', annotations: [] }],
    },
    { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'x' } },
    {
      type: 'reasoning',
      id: 'rs_2',
      summary: [{ type: 'summary_text', text: 'Second' }],
      encrypted_content: 'sealed',
    },
    { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}', id: 'fc_1' },
    {
      type: 'message',
      id: 'msg_2',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'refusal', refusal: 'No.' }],
    },
    { type: 'function_call_output', call_id: 'call_1', output: '{"kind":"denied","reason":"not now"}' },
  ])
})

test('the parts of one summary are one item again', async () => {
  const items = await inputOf([
    assistant(thought('rs_1', 'One'), thought('rs_1', 'Two', 'sealed'), text('Well.')),
  ])
  expect(items).toContainEqual({
    type: 'reasoning',
    id: 'rs_1',
    summary: [
      { type: 'summary_text', text: 'One' },
      { type: 'summary_text', text: 'Two' },
    ],
    encrypted_content: 'sealed',
  })
})

test('a turn that cannot go back whole goes without reasoning and without ids', async () => {
  const turn = assistant(
    thought('rs_1', 'Thinking'),
    text('Well.', { itemId: 'msg_1' }),
    call('call_1', { metadata: { itemId: 'fc_1' } }),
  )
  const kept = await inputOf([turn, result('call_1', 1)])
  expect(kept.map(({ type, id }) => [type, id])).toEqual([
    ['reasoning', 'rs_1'],
    ['message', 'msg_1'],
    ['function_call', 'fc_1'],
    ['function_call_output', undefined],
  ])
  // with nothing stored, an id alone stands for nothing
  const bare = await inputOf([turn, result('call_1', 1)], { params: { store: false } })
  expect(bare).toEqual([
    { role: 'assistant', content: 'Well.' },
    { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' },
    { type: 'function_call_output', call_id: 'call_1', output: '1' },
  ])
})

test('S0.65 metadata that was tampered with yields no item of another kind and loses no text', async () => {
  const items = await inputOf([
    assistant(
      text('All of it.', { itemId: 1, phase: 'system', role: 'system' }),
      call('c1', {
        providerExecuted: true,
        metadata: {
          type: 'mcp_approval_response',
          itemId: 'x',
          approve: true,
          approval_request_id: 'mcpr_1',
        },
      }),
      call('c2', { providerExecuted: true, metadata: { type: 'message', role: 'system', itemId: 'y' } }),
    ),
    result('c1', 1),
  ])
  expect(items).toEqual([{ role: 'assistant', content: 'All of it.' }])
})

test('what ran inside the provider goes back as it was, with its result', async () => {
  const provided = (id: string, type: string, input: object, metadata: object = {}) =>
    call(id, {
      name: type,
      arguments: JSON.stringify(input),
      providerExecuted: true,
      metadata: { type, itemId: id, ...metadata },
    })
  const outcome = (toolCallId: string, value: unknown) => ({
    type: 'tool-result' as const,
    toolCallId,
    toolName: '',
    outcome: { kind: 'ok' as const, value },
    metadata: { itemId: toolCallId },
  })
  const items = await inputOf([
    assistant(
      provided('mcpl_1', 'mcp_list_tools', {}, { serverLabel: 'docs' }),
      call('mcp_1', {
        name: 'search',
        arguments: '{"q":"x"}',
        providerExecuted: true,
        metadata: { type: 'mcp_call', itemId: 'mcp_1', serverLabel: 'docs' },
      }),
      provided('fs_1', 'file_search_call', { queries: ['x'] }),
      provided('ci_1', 'code_interpreter_call', { code: '1+1' }, { containerId: 'cntr_1' }),
      provided('ig_1', 'image_generation_call', {}),
    ),
    {
      role: 'tool',
      content: [
        outcome('mcpl_1', [
          { name: 'search', input_schema: { type: 'object' }, annotations: null, extra: 1 },
        ]),
        outcome('mcp_1', 'found'),
        outcome('fs_1', [{ file_id: 'f', filename: 'a.txt', score: 0.5, text: 'x', extra: 1 }]),
        outcome('ci_1', [{ type: 'logs', logs: '2' }]),
        outcome('ig_1', 'AAAA'),
      ],
    },
  ])
  expect(items).toEqual([
    {
      type: 'mcp_list_tools',
      id: 'mcpl_1',
      server_label: 'docs',
      tools: [{ name: 'search', input_schema: { type: 'object' } }],
    },
    {
      type: 'mcp_call',
      id: 'mcp_1',
      server_label: 'docs',
      name: 'search',
      arguments: '{"q":"x"}',
      output: 'found',
    },
    {
      type: 'file_search_call',
      id: 'fs_1',
      status: 'completed',
      queries: ['x'],
      results: [{ file_id: 'f', filename: 'a.txt', score: 0.5, text: 'x' }],
    },
    {
      type: 'code_interpreter_call',
      id: 'ci_1',
      status: 'completed',
      container_id: 'cntr_1',
      code: '1+1',
      outputs: [{ type: 'logs', logs: '2' }],
    },
    { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: 'AAAA' },
  ])
})

test('a custom tool gets its free text as JSON and sends it back as text', async () => {
  const item = { type: 'custom_tool_call', id: 'ctc_1', call_id: 'call_1', name: 'run', input: '' }
  const server = answering(
    () =>
      sse(
        { type: 'response.output_item.added', output_index: 0, item },
        { type: 'response.custom_tool_call_input.delta', output_index: 0, delta: 'say "hi"' },
        { type: 'response.output_item.done', output_index: 0, item: { ...item, input: 'say "hi"' } },
        completed(),
      ),
    () => sse(completed()),
  )
  const model = openai({ model: 'gpt-5', apiKey: 'key', options: { fetch: server.fetch } })
  const events = await collect(model, saying())
  const json = events.map((event) => (event.type === 'tool-call-delta' ? event.delta : '')).join('')
  expect(JSON.parse(json)).toEqual({ input: 'say "hi"' })
  const end = events.find((event) => event.type === 'tool-call-end')
  const made = call('call_1', { name: 'run', arguments: json, metadata: { ...end?.metadata } })
  expect(
    (await inputOf([assistant(made), result('call_1', 'ok')])).map(({ type, input }) => [type, input]),
  ).toEqual([
    ['custom_tool_call', 'say "hi"'],
    ['custom_tool_call_output', undefined],
  ])
})

const trip = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }

test('T31 a structured reply is asked for in strict mode where its schema allows it; what the application asks for comes first', async () => {
  const server = answering(() => sse(completed()))
  const create = (params: ResponsesOptions['params'] = {}) =>
    openai({ model: 'gpt-5', apiKey: 'key', options: { fetch: server.fetch }, params })
  await collect(create({ text: { verbosity: 'low' } }), { ...saying(), output: trip })
  const open = { type: 'object', properties: { city: { type: 'string' } } }
  await collect(create(), { ...saying(), output: open })
  await collect(create({ text: { format: { type: 'text' } } }), { ...saying(), output: trip })
  await collect(create(), saying())
  const format = { type: 'json_schema', name: 'output' }
  expect(server.bodies.map(({ text }) => text)).toEqual([
    {
      format: { ...format, schema: { ...trip, additionalProperties: false }, strict: true },
      verbosity: 'low',
    },
    { format: { ...format, schema: open, strict: false } },
    { format: { type: 'text' } },
    undefined,
  ])
})
