import { CountersignError } from '@countersign/core'
import { type ChatOptions, openai } from '@countersign/openai'
import type { ModelEvent } from '@countersign/server'
import { expect, test } from 'vitest'
import { answering, chunk, collect, saying, sse } from './server.js'

function chat(fetch: ReturnType<typeof answering>['fetch'], options: ChatOptions['options'] = {}) {
  return openai({ api: 'chat', model: 'm', apiKey: 'key', options: { fetch, maxRetries: 0, ...options } })
}

const failing =
  (status: number, error: object, headers: Record<string, string> = {}) =>
  () =>
    Response.json({ error }, { status, headers })

async function failure(run: Promise<unknown>): Promise<CountersignError> {
  const error = await run.catch((thrown: unknown) => thrown)
  if (error instanceof CountersignError) return error
  throw new Error(`no failure: ${JSON.stringify(error)}`)
}

const table = [
  [
    401,
    { code: 'invalid_api_key', message: 'Wrong key sk-1' },
    {},
    { code: 'invalid_api_key', retryable: false },
  ],
  [
    429,
    { code: 'rate_limit_exceeded', message: 'Slow down' },
    { 'retry-after': '7' },
    { retryable: true, retryAfter: 7 },
  ],
  [
    429,
    { code: 'rate_limit_exceeded', message: 'Slow down' },
    { 'retry-after-ms': '250' },
    { retryAfter: 0.25 },
  ],
  [
    429,
    { code: 'insufficient_quota', message: 'No money' },
    {},
    { code: 'insufficient_quota', retryable: false },
  ],
  [503, { type: 'overloaded', message: 'Busy' }, {}, { code: 'overloaded', retryable: true }],
  [
    400,
    { type: 'invalid_request_error', message: 'Bad' },
    {},
    { code: 'invalid_request_error', retryable: false },
  ],
] as const

for (const [status, error, headers, data] of table) {
  test(`HTTP ${status} ${JSON.stringify(error)} is an error with its code, and whether trying again may help`, async () => {
    const server = answering(failing(status, error, headers))
    const thrown = await failure(collect(chat(server.fetch), saying()))
    expect(thrown.code).toBe('model-failed')
    expect(thrown.data).toMatchObject({ provider: 'openai', status, message: error.message, ...data })
    expect(thrown.message).not.toContain(error.message)
    expect(server.bodies).toHaveLength(1)
  })
}

test('a date to retry after counts from now', async () => {
  const date = new Date(Date.now() + 60_000).toUTCString()
  const server = answering(failing(429, { message: 'Slow down' }, { 'retry-after': date }))
  const { data } = await failure(collect(chat(server.fetch), saying()))
  expect(Number(data.retryAfter)).toBeGreaterThan(50)
  expect(Number(data.retryAfter)).toBeLessThanOrEqual(60)
})

test('the SDK retries as often as its setting says, and only before the first event', async () => {
  const busy = failing(503, { message: 'Busy' }, { 'retry-after-ms': '1' })
  const server = answering(busy, busy, () => sse(chunk({ content: 'ok' }, 'stop')))
  await collect(chat(server.fetch, { maxRetries: 2 }), saying())
  expect(server.bodies).toHaveLength(3)

  const breaking = answering(() =>
    sse(chunk({ content: 'I' }), { error: { code: 'server_error', message: 'Oh' } }),
  )
  const events: ModelEvent[] = []
  const broken = (async () => {
    const model = chat(breaking.fetch, { maxRetries: 2 })
    for await (const event of model.stream(saying(), { signal: new AbortController().signal }))
      events.push(event)
  })()
  expect((await failure(broken)).data).toMatchObject({ code: 'server_error', message: 'Oh', retryable: true })
  expect(events).toContainEqual({ type: 'text-delta', delta: 'I' })
  expect(breaking.bodies).toHaveLength(1)
})

test('no connection, and none in time', async () => {
  const down = answering(() => Promise.reject(new TypeError('fetch failed')))
  expect((await failure(collect(chat(down.fetch), saying()))).data).toMatchObject({
    code: 'connection-failed',
    retryable: true,
  })
  const silent = (_url: unknown, init?: { signal?: AbortSignal | null }) =>
    new Promise<Response>((_, reject) => {
      init?.signal?.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError')))
    })
  const late = openai({
    api: 'chat',
    model: 'm',
    apiKey: 'key',
    options: { fetch: silent, maxRetries: 0, timeout: 5 },
  })
  expect((await failure(collect(late, saying()))).data).toMatchObject({ code: 'timed-out', retryable: true })
})

test('an answer without its last event is an error that may pass', async () => {
  const server = answering(() => sse(chunk({ content: 'I' })))
  expect((await failure(collect(chat(server.fetch), saying()))).data).toMatchObject({
    code: 'truncated-stream',
    retryable: true,
  })
})

test('a request that was stopped before it was answered is no error', async () => {
  const controller = new AbortController()
  controller.abort()
  const server = answering(() => sse(chunk({ content: 'ok' }, 'stop')))
  expect(await collect(chat(server.fetch), saying(), controller.signal)).toEqual([])
})

test('options that cannot be are refused by name', () => {
  expect(() => openai({ model: '' })).toThrow(/model is empty/)
  expect(() => openai({ model: 'm', apiKey: 'k', provider: 'a/b' })).toThrow(/without a slash/)
  expect(openai({ model: 'org/m', apiKey: 'k', provider: 'groq' }).id).toBe('groq/org/m')
})
