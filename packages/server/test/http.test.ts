import { createServer, type RequestListener, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import type { ModelEvent } from '@countersign/server'
import { handleChat, readRunInput } from '@countersign/server'
import { toNodeHandler } from '@countersign/server/node'
import { afterEach, expect, test } from 'vitest'
import { call, counted, input, say, testAgent, user } from './support.js'

const closers: (() => void)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

const post = (
  body: BodyInit,
  headers: Record<string, string> = { 'content-type': 'application/json' },
  signal?: AbortSignal,
) => new Request('http://localhost/', { method: 'POST', headers, body, ...(signal && { signal }) })

async function listen(handler: RequestListener): Promise<string> {
  const server = createServer(handler).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  closers.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

test('a run goes out as SSE with LF framing, numbered ids and no caching, and without any CORS header', async () => {
  const { agent } = testAgent([say('hi\r\nthere')])
  const given = input([user('go')])
  const response = await handleChat(agent, post(JSON.stringify(given)))
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
  expect(response.headers.get('cache-control')).toBe('no-store, no-transform')
  expect(response.headers.get('x-accel-buffering')).toBe('no')
  expect(response.headers.has('access-control-allow-origin')).toBe(false)
  const text = await response.text()
  expect(text).not.toContain('\r')
  const frames = text.split('\n\n').slice(0, -1)
  frames.forEach((frame, index) => {
    const [id, data, ...rest] = frame.split('\n')
    expect(id).toBe(`id: ${given.runId}:${index + 1}`)
    expect(data).toMatch(/^data: \{"type":"/)
    expect(rest).toEqual([])
  })
})

const good = () => input([user('go')])
const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`

test.each<[string, () => Request, number, string]>([
  ['another method', () => new Request('http://localhost/', { method: 'GET' }), 405, 'invalid-request'],
  [
    'text/plain',
    () => post(JSON.stringify(good()), { 'content-type': 'text/plain' }),
    415,
    'invalid-request',
  ],
  ['no JSON', () => post('{'), 400, 'invalid-request'],
  ['bytes that are no UTF-8', () => post(new Uint8Array([0x22, 0xff, 0x22])), 400, 'invalid-request'],
  ['an array', () => post('[]'), 400, 'invalid-request'],
  ['no messages', () => post('{"threadId":"t","runId":"r"}'), 400, 'invalid-request'],
  [
    'a message with a number for its text',
    () => post(JSON.stringify(good()).replace('"go"', '7')),
    400,
    'invalid-request',
  ],
  [
    '__proto__ as a key',
    () => post('{"threadId":"t","runId":"r","messages":[],"state":{"__proto__":{}}}'),
    400,
    'invalid-request',
  ],
  [
    'a hidden __proto__',
    () => post('{"threadId":"t","runId":"r","messages":[],"state":{"\\u005f_proto__":{}}}'),
    400,
    'invalid-request',
  ],
  [
    'too deep a value',
    () => post(`{"threadId":"t","runId":"r","messages":[],"state":${deep(64)}}`),
    400,
    'invalid-request',
  ],
  ['a long id', () => post(JSON.stringify({ ...good(), threadId: 'x'.repeat(257) })), 400, 'invalid-request'],
  ['a line break in an id', () => post(JSON.stringify({ ...good(), runId: 'a\nb' })), 400, 'invalid-request'],
  ['too large a body', () => post(`"${'x'.repeat(4 * 1024 * 1024)}"`), 413, 'request-too-large'],
  [
    'too many messages',
    () =>
      post(
        JSON.stringify({
          ...good(),
          messages: Array.from({ length: 20_001 }, (_, n) => ({ id: `${n}`, role: 'user', content: '' })),
        }),
      ),
    413,
    'request-too-large',
  ],
  [
    'too many answers',
    () =>
      post(
        JSON.stringify({
          ...good(),
          resume: Array.from({ length: 257 }, (_, n) => ({ interruptId: `${n}`, status: 'cancelled' })),
        }),
      ),
    413,
    'request-too-large',
  ],
  [
    'too many calls in a message',
    () => {
      const toolCalls = Array.from({ length: 257 }, (_, n) => ({
        id: `${n}`,
        type: 'function',
        function: { name: 'x', arguments: '' },
      }))
      return post(JSON.stringify({ ...good(), messages: [{ id: 'a', role: 'assistant', toolCalls }] }))
    },
    413,
    'request-too-large',
  ],
])('%s is turned away before any stream', async (_, request, status, code) => {
  const { agent, model } = testAgent([say('no')])
  const response = await handleChat(agent, request())
  expect(response.status).toBe(status)
  expect(response.headers.get('content-type')).toBe('application/json')
  expect(await response.json()).toMatchObject({ error: { code, message: expect.any(String) } })
  expect(model.requests.length).toBe(0)
})

test('readRunInput reads what a client sends, and a value 64 levels deep', async () => {
  const given = { ...good(), state: JSON.parse(deep(63)) }
  expect(await readRunInput(post(JSON.stringify(given)))).toEqual(given)
})

/** A model that says one word and then waits until it is stopped. */
function waiting() {
  let [begin, stopped] = [() => {}, () => {}]
  const began = new Promise<void>((resolve) => {
    begin = resolve
  })
  const ended = new Promise<void>((resolve) => {
    stopped = resolve
  })
  async function* turn(_: unknown, { signal }: { signal: AbortSignal }): AsyncGenerator<ModelEvent> {
    begin()
    try {
      yield { type: 'text-delta', delta: 'wait' }
      if (!signal.aborted)
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
    } finally {
      stopped()
    }
  }
  return { turn, began, ended }
}

/** Reads a response until it says `word`; answers the reader. */
async function readUntil(response: Response, word: string) {
  const reader = response.body?.getReader()
  if (reader === undefined) throw new Error('no body')
  let text = ''
  while (!text.includes(word)) text += new TextDecoder().decode((await reader.read()).value)
  return reader
}

test('silence is filled with comments', async () => {
  const { turn } = waiting()
  const { agent } = testAgent([turn])
  const response = await handleChat(agent, post(JSON.stringify(good())), { keepAlive: 5 })
  const reader = await readUntil(response, ': keep-alive\n\n')
  await reader.cancel()
})

test("S0.51 a client that goes away stops the model: by the request's signal, by cancelling, and over a socket", async () => {
  const first = waiting()
  const leave = new AbortController()
  const request = post(JSON.stringify(good()), undefined, leave.signal)
  await readUntil(await handleChat(testAgent([first.turn]).agent, request), 'wait')
  leave.abort()
  await first.ended

  const second = waiting()
  const reader = await readUntil(
    await handleChat(testAgent([second.turn]).agent, post(JSON.stringify(good()))),
    'wait',
  )
  await reader.cancel()
  await second.ended

  const third = waiting()
  const url = await listen(toNodeHandler(testAgent([third.turn]).agent))
  const socket = new AbortController()
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify(good())
  await readUntil(await fetch(url, { method: 'POST', headers, body, signal: socket.signal }), 'wait')
  socket.abort()
  await third.ended
})

test('a client that goes away stops all runs that it has asked for on its connection, not the first alone', async () => {
  const runs = [waiting(), waiting(), waiting()]
  const url = await listen(toNodeHandler(testAgent(runs.map(({ turn }) => turn)).agent))
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  for (const _ of runs) {
    const body = JSON.stringify(good())
    const head = ['POST / HTTP/1.1', 'host: localhost', 'content-type: application/json']
    socket.write([...head, `content-length: ${body.length}`, '', body].join('\r\n'))
  }
  await Promise.all(runs.map(({ began }) => began))
  socket.destroy()
  await Promise.all(runs.map(({ ended }) => ended))
})

test('a client that goes away does not stop a claimed tool', async () => {
  let finish = () => {}
  let begun = () => {}
  const started = new Promise<void>((resolve) => {
    begun = resolve
  })
  const outcome: boolean[] = []
  const tool = counted('long', {
    needsApproval: true,
    execute: async (_, { signal }) => {
      begun()
      await new Promise<void>((resolve) => {
        finish = resolve
      })
      outcome.push(signal.aborted)
      return 'ended'
    },
  })
  const { agent } = testAgent([call(['c1', 'long', {}]), say('ok'), say('ok')], { tools: [tool.tool] })
  const { ask, answer, collect, results } = await import('./support.js')
  const { history, first } = await ask(agent)
  const resume = [answer(first, { approved: true })]
  const leave = new AbortController()
  const response = await handleChat(
    agent,
    post(JSON.stringify(input(history, { resume })), undefined, leave.signal),
  )
  await response.body?.getReader().read()
  await started
  leave.abort()
  finish()
  const again = await collect(agent, input(history, { resume }))
  expect(results(again)).toMatchObject([{ content: 'ended' }])
  expect([tool.runs.length, outcome]).toEqual([1, [false]])
})

test('toNodeHandler honours a body that was parsed already, and answers bad ones with a status', async () => {
  const { agent } = testAgent(() => say('hi'))
  const chat = toNodeHandler(agent)
  const url = await listen(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    await chat(Object.assign(request, { body: JSON.parse(Buffer.concat(chunks).toString()) }), response)
  })
  const headers = { 'content-type': 'application/json' }
  const fine = await fetch(url, { method: 'POST', headers, body: JSON.stringify(good()) })
  expect(await fine.text()).toContain('RUN_FINISHED')
  const bad = await fetch(url, { method: 'POST', headers, body: '{"threadId":1}' })
  expect([bad.status, (await bad.json()).error.code]).toEqual([400, 'invalid-request'])
})

test('over a socket a body that is too large is answered with 413, whether it says its size or not', async () => {
  const { agent } = testAgent([say('no')])
  const url = await listen(toNodeHandler(agent))
  const half = 'x'.repeat(3 * 1024 * 1024)
  for (const length of [{}, { 'content-length': String(2 * half.length) }]) {
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const headers = { 'content-type': 'application/json', ...length }
      const sent = request(url, { method: 'POST', headers }, (response) => resolve(response.statusCode))
      sent.on('error', reject)
      sent.write(half)
      sent.write(half)
      sent.end()
    })
    expect(status).toBe(413)
  }
})

test('a context function that fails is a 500 without internals', async () => {
  const { agent, model } = testAgent([say('no')])
  const context = () => {
    throw new Error('database at 10.0.0.1 is down')
  }
  const url = await listen(toNodeHandler(agent, { context }))
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(good()),
  })
  expect(response.status).toBe(500)
  expect(await response.text()).not.toContain('10.0.0.1')
  const nobody = await handleChat(agent, post(JSON.stringify(good())), { context: { subject: '' } })
  expect(nobody.status).toBe(500)
  expect(model.requests.length).toBe(0)
})
