import { CountersignError } from '@countersign/core'
import { google } from '@countersign/google'
import type { ModelEvent, ModelMessage, ModelRequest } from '@countersign/server'
import fc from 'fast-check'
import { expect, test } from 'vitest'

interface Answer {
  readonly chunks?: readonly object[]
  readonly body?: object
  readonly status?: number
}

type Options = Partial<Parameters<typeof google>[0]>

/** A model whose provider answers with this, and what it was asked. */
function answering({ chunks, body, status = 200 }: Answer, options: Options = {}) {
  const asked: Record<string, unknown>[] = []
  const text =
    chunks === undefined
      ? JSON.stringify(body)
      : chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\r\n\r\n`).join('')
  const type = chunks === undefined ? 'application/json' : 'text/event-stream'
  const fake = async (_: string | URL | Request, init?: RequestInit) => {
    asked.push(JSON.parse(String(init?.body)))
    return new Response(text, { status, headers: { 'content-type': type } })
  }
  const sdk = { httpOptions: { fetch: fake } }
  return { asked, model: google({ model: 'test-model', apiKey: 'k', options: sdk, ...options }) }
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

function chunk(parts: readonly object[], more: object = {}) {
  return { candidates: [{ content: { role: 'model', parts }, ...more }] }
}

const end = { finishReason: 'STOP' }
const said = [chunk([{ text: 'ok' }], end)]

test('every part goes back in its order, each signature with its part', async () => {
  const provider = answering({ chunks: said })
  await listen(provider, {
    messages: [
      user('go'),
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'unsigned' },
          { type: 'reasoning', text: 'signed', signature: 's0', metadata: { type: 'thought' } },
          { type: 'text', text: 'Looking.', metadata: { thoughtSignature: 's1' } },
          {
            type: 'tool-call',
            id: 'c1',
            name: 'look',
            arguments: '{"a":1}',
            signature: 's2',
            metadata: { type: 'functionCall' },
          },
          { type: 'tool-call', id: 'c2', name: 'now', arguments: '', metadata: { type: 'functionCall' } },
          { type: 'text', text: 'So.', metadata: { thoughtSignature: 's3', apart: true } },
        ],
      },
      {
        role: 'tool',
        content: [
          { type: 'tool-result', toolCallId: 'c1', toolName: 'look', outcome: { kind: 'ok', value: [1] } },
          {
            type: 'tool-result',
            toolCallId: 'c2',
            toolName: 'now',
            outcome: { kind: 'denied', reason: 'no' },
          },
        ],
      },
      user('and?'),
    ],
  })
  expect(provider.asked[0]?.contents).toEqual([
    { role: 'user', parts: [{ text: 'go' }] },
    {
      role: 'model',
      parts: [
        { text: 'signed', thought: true, thoughtSignature: 's0' },
        { text: 'Looking.', thoughtSignature: 's1' },
        { functionCall: { id: 'c1', name: 'look', args: { a: 1 } }, thoughtSignature: 's2' },
        { functionCall: { id: 'c2', name: 'now', args: {} } },
        { text: 'So.' },
        { text: '', thoughtSignature: 's3' },
      ],
    },
    {
      role: 'user',
      parts: [
        { functionResponse: { id: 'c1', name: 'look', response: { output: [1] } } },
        {
          functionResponse: { id: 'c2', name: 'now', response: { error: { kind: 'denied', reason: 'no' } } },
        },
      ],
    },
    { role: 'user', parts: [{ text: 'and?' }] },
  ])
})

test('S0.64 what other providers thought, ran and asked about is left out without a word', async () => {
  const provider = answering({ chunks: said })
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
  expect(provider.asked[0]?.contents).toEqual([{ role: 'user', parts: [{ text: 'go' }] }])
})

test('Gemini 3 gets a signature for a call that another model made, and only for such a one', async () => {
  const provider = answering({ chunks: said }, { model: 'gemini-3-pro-preview' })
  const call = { type: 'tool-call' as const, name: 'look', arguments: '{}' }
  const result = {
    type: 'tool-result' as const,
    toolName: 'look',
    outcome: { kind: 'ok' as const, value: 1 },
  }
  await listen(provider, {
    messages: [
      user('go'),
      {
        role: 'assistant',
        content: [
          { ...call, id: 'c1' },
          { ...call, id: 'c2', metadata: { type: 'functionCall' } },
        ],
      },
      { role: 'tool', content: ['c1', 'c2'].map((toolCallId) => ({ ...result, toolCallId })) },
    ],
  })
  expect(provider.asked[0]?.contents).toMatchObject([
    {},
    {
      parts: [
        { thoughtSignature: 'skip_thought_signature_validator' },
        { functionCall: { id: 'c2', name: 'look', args: {} } },
      ],
    },
    {},
  ])
  expect(JSON.stringify(provider.asked[0]?.contents).match(/thoughtSignature/g)).toHaveLength(1)
})

test('files go in, and so do the system, the tools and the parameters of the application', async () => {
  const responseJsonSchema = { type: 'object' }
  const provider = answering(
    { chunks: said },
    {
      params: {
        tools: [{ googleSearch: {} }],
        responseMimeType: 'application/json',
        responseJsonSchema,
        thinkingConfig: { includeThoughts: true },
      },
    },
  )
  await listen(provider, {
    system: 'Be brief.',
    messages: [
      {
        role: 'user',
        content: [
          { type: 'file', media: 'image', source: { type: 'data', mimeType: 'image/png', value: 'AAAA' } },
          {
            type: 'file',
            media: 'audio',
            source: { type: 'url', value: 'gs://a/b.wav', mimeType: 'audio/wav' },
          },
        ],
      },
    ],
    tools: [{ name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } }],
  })
  expect(provider.asked[0]).toMatchObject({
    contents: [
      {
        role: 'user',
        parts: [
          { inlineData: { data: 'AAAA', mimeType: 'image/png' } },
          { fileData: { fileUri: 'gs://a/b.wav', mimeType: 'audio/wav' } },
        ],
      },
    ],
    systemInstruction: { parts: [{ text: 'Be brief.' }] },
    tools: [
      {
        functionDeclarations: [
          { name: 'look', description: 'Looks.', parametersJsonSchema: { type: 'object', properties: {} } },
        ],
      },
      { googleSearch: {} },
    ],
    generationConfig: {
      responseMimeType: 'application/json',
      responseJsonSchema,
      thinkingConfig: { includeThoughts: true },
    },
  })
})

test('T31 a structured reply is asked for with responseJsonSchema; models before Gemini 3 are told of it where there are tools', async () => {
  const output = { type: 'object', properties: { city: { type: 'string' } } }
  const tools = [{ name: 'look', description: 'Looks.', parameters: { type: 'object' } }]
  const asked = async (model: string, request: Partial<ModelRequest>) => {
    const provider = answering({ chunks: said }, { model })
    await listen(provider, { system: 'Be brief.', output, ...request })
    const { generationConfig, systemInstruction } = provider.asked[0] ?? {}
    return { generationConfig, said: JSON.stringify(systemInstruction) }
  }
  const generationConfig = { responseMimeType: 'application/json', responseJsonSchema: output }
  for (const [model, request] of [
    ['gemini-2.5-flash', {}],
    ['gemini-3-pro', { tools }],
  ] as const) {
    const { said, ...sent } = await asked(model, request)
    expect(sent).toEqual({ generationConfig })
    expect(said).not.toContain('Schema')
  }
  const told = await asked('gemini-2.5-flash', { tools })
  expect(told.generationConfig ?? {}).toEqual({})
  expect(told.said).toMatch(/Be brief\..*JSON Schema.*city/)
})

/** The places of a value's leaves, depth first, and the leaves. */
function leaves(value: unknown, path: string): { path: string; value: unknown }[] {
  const inner = (key: string) => (/^\w+$/.test(key) ? `.${key}` : `['${key.replace(/[\\']/g, '\\$&')}']`)
  if (Array.isArray(value)) return value.flatMap((one, i) => leaves(one, `${path}[${i}]`))
  if (typeof value !== 'object' || value === null) return [{ path, value }]
  return Object.entries(value).flatMap(([key, one]) => leaves(one, path + inner(key)))
}

function partials({ path: jsonPath, value }: { path: string; value: unknown }): object[] {
  if (value === null) return [{ jsonPath, nullValue: 'NULL_VALUE' }]
  if (typeof value === 'number') return [{ jsonPath, numberValue: value }]
  if (typeof value === 'boolean') return [{ jsonPath, boolValue: value }]
  const text = String(value)
  const middle = Math.floor(text.length / 2)
  return [
    { jsonPath, stringValue: text.slice(0, middle), willContinue: true },
    { jsonPath, stringValue: text.slice(middle), willContinue: true },
    { jsonPath, stringValue: '' },
  ]
}

const key = fc
  .oneof(fc.stringMatching(/^[a-z]\w*$/), fc.string({ minLength: 1, maxLength: 4 }))
  .filter((one) => one !== '__proto__')
const { args } = fc.letrec((tie) => ({
  leaf: fc.oneof(fc.string(), fc.boolean(), fc.integer(), fc.constant(null)),
  tree: fc.oneof({ depthSize: 'small' }, tie('leaf'), tie('list'), tie('args')),
  list: fc.array(tie('tree'), { minLength: 1, maxLength: 3 }),
  args: fc.dictionary(key, tie('tree'), { minKeys: 1, maxKeys: 3, noNullPrototype: true }),
}))

test('arguments that arrive place by place become their JSON, whatever they are', async () => {
  await fc.assert(
    fc.asyncProperty(args, async (given) => {
      const pieces = leaves(given, '$').flatMap(partials)
      const call = (functionCall: object) => chunk([{ functionCall }])
      const chunks = [
        call({ name: 'cook', willContinue: true }),
        ...pieces.map((piece) => call({ partialArgs: [piece], willContinue: true })),
        call({}),
        chunk([], end),
      ]
      const { events, error } = await listen(answering({ chunks }))
      expect(error).toBeUndefined()
      const text = events.map((event) => (event.type === 'tool-call-delta' ? event.delta : '')).join('')
      expect(JSON.parse(text)).toEqual(given)
      expect(events.at(-1)).toEqual({ type: 'finish', reason: 'tool_calls' })
    }),
    { seed: 11, numRuns: 60 },
  )
})

test('a place that was left cannot be come back to, and a call that was cut never ends', async () => {
  const call = (jsonPath: string) =>
    chunk([{ functionCall: { name: 'f', partialArgs: [{ jsonPath, numberValue: 1 }], willContinue: true } }])
  const { error } = await listen(answering({ chunks: [call('$.a.b'), call('$.c'), call('$.a.d')] }))
  expect(error?.message).toContain('$.a.d')
  const cut = await listen(answering({ chunks: [call('$.a'), chunk([], { finishReason: 'MAX_TOKENS' })] }))
  expect(cut.events.map(({ type }) => type)).not.toContain('tool-call-end')
  expect(cut.events.at(-1)).toEqual({ type: 'finish', reason: 'length' })
})

test('usage counts thoughts as output and what tools read as input', async () => {
  const usageMetadata = {
    promptTokenCount: 1,
    toolUsePromptTokenCount: 2,
    candidatesTokenCount: 4,
    thoughtsTokenCount: 8,
    totalTokenCount: 15,
  }
  const { events } = await listen(answering({ chunks: [{ ...said[0], usageMetadata }] }))
  expect(events.find(({ type }) => type === 'usage')).toEqual({
    type: 'usage',
    usage: { inputTokens: 3, outputTokens: 12, totalTokens: 15, reasoningTokens: 8 },
  })
})

test('a whole answer says what a stream of one piece says, why it ended included', async () => {
  const answer = chunk(
    [
      { text: 'hm', thought: true },
      { text: 'Looking.' },
      { functionCall: { id: 'c1', name: 'look', args: {} }, thoughtSignature: 's1' },
    ],
    { ...end, finishMessage: 'Made a call.' },
  )
  const whole = await listen(answering({ body: answer }, { stream: false }))
  const streamed = await listen(answering({ chunks: [answer] }))
  expect(whole.events).toEqual(streamed.events)
  expect(whole.events).toContainEqual({
    type: 'metadata',
    metadata: { finishReason: 'STOP', finishDetail: 'Made a call.' },
  })
})

test('errors are typed: code, status, whether and when to try again', async () => {
  const limited = await listen(
    answering({
      status: 429,
      body: {
        error: {
          code: 429,
          message: 'Quota.',
          status: 'RESOURCE_EXHAUSTED',
          details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.4s' }],
        },
      },
    }),
  )
  expect(limited.error?.data).toMatchObject({
    provider: 'google',
    code: '429',
    message: 'Quota.',
    status: 429,
    retryable: true,
    retryAfter: 34.4,
  })
  const broken = await listen(
    answering({
      chunks: [
        chunk([{ text: 'a' }]),
        { error: { code: 503, message: 'Overloaded.', status: 'UNAVAILABLE' } },
      ],
    }),
  )
  expect(broken.error?.data).toMatchObject({ code: '503', message: 'Overloaded.', retryable: true })
  expect(broken.events).toContainEqual({ type: 'text-delta', delta: 'a' })
  const cut = await listen(answering({ chunks: [chunk([{ text: 'a' }])] }))
  expect(cut.error?.data).toMatchObject({ code: 'truncated-stream', retryable: true })
})

test('a model must be named', () => {
  expect(() => google({ model: '' })).toThrow(/model is empty/)
})
