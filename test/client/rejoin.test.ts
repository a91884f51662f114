import { once } from 'node:events'
import { createServer } from 'node:http'
import { ChatClient, fetchServerSentEvents, type RunCursor, stream } from '@countersign/client'
import type { AGUIEvent, RunAgentInput } from '@countersign/core'
import { expect, onTestFinished, test } from 'vitest'

/** A server that keeps its one run, and breaks the first stream off after `first` events. */
async function startServer(events: (run: RunAgentInput) => AGUIEvent[], first: number, keeps = true) {
  const asked: string[] = []
  let kept: { run: RunAgentInput; events: AGUIEvent[] } | undefined
  const server = createServer(async (request, response) => {
    const frame = (event: AGUIEvent, n: number) =>
      `id: ${kept?.run.runId}:${n}\ndata: ${JSON.stringify(event)}\n\n`
    if (request.method === 'GET') {
      const last = request.headers['last-event-id']
      const after = last === undefined ? -1 : Number(String(last).split(':').at(-1))
      asked.push(`rejoin after ${after}`)
      if (!keeps || !kept) {
        response.writeHead(204).end()
        return
      }
      const rest = kept.events.map(frame).slice(after + 1)
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(rest.join(''))
      return
    }
    if (request.method === 'DELETE') {
      asked.push('stop')
      response.writeHead(204).end()
      return
    }
    let body = ''
    for await (const chunk of request) body += chunk
    const run: RunAgentInput = JSON.parse(body)
    asked.push('run')
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const all = events(run)
    const broken = kept === undefined
    kept = { run, events: all }
    response.write(
      all
        .map(frame)
        .slice(0, broken ? first : all.length)
        .join(''),
    )
    if (broken) setTimeout(() => response.destroy(), 20)
    else response.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  return { asked, url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/` }
}

const story = ({ threadId, runId }: RunAgentInput): AGUIEvent[] => [
  { type: 'RUN_STARTED', threadId, runId },
  { type: 'TEXT_MESSAGE_START', messageId: `m-${runId}` },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: `m-${runId}`, delta: 'one ' },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: `m-${runId}`, delta: 'two' },
  { type: 'TEXT_MESSAGE_END', messageId: `m-${runId}` },
  {
    type: 'TOOL_CALL_START',
    toolCallId: `c-${runId}`,
    toolCallName: 'read_file',
    parentMessageId: `m-${runId}`,
  },
  { type: 'TOOL_CALL_ARGS', toolCallId: `c-${runId}`, delta: '{"path":' },
  { type: 'TOOL_CALL_ARGS', toolCallId: `c-${runId}`, delta: '"a.txt"}' },
  { type: 'TOOL_CALL_END', toolCallId: `c-${runId}` },
  { type: 'TOOL_CALL_RESULT', messageId: `r-${runId}`, toolCallId: `c-${runId}`, content: '"text"' },
  { type: 'RUN_FINISHED', threadId, runId },
]

function shown(chat: ChatClient): unknown {
  const parts = chat.getSnapshot().messages.at(-1)?.parts ?? []
  return parts.map((part) =>
    part.type === 'text' ? part.text : part.type === 'tool-call' ? [part.state, part.input] : part.type,
  )
}

const whole = ['one two', ['complete', { path: 'a.txt' }], 'tool-result']

for (let first = 0; first < 11; first++) {
  test(`a run that broke off after ${first} events is taken up where it stopped, by retry() alone`, async () => {
    const { url, asked } = await startServer(story, first)
    const chat = new ChatClient({ connection: fetchServerSentEvents(url, { rejoin: true }) })
    const { status } = await chat.sendMessage('Read it.')
    expect(status).toBe('failed')
    expect(chat.getSnapshot().status).toBe('error')
    expect(asked).toEqual(['run'])
    await chat.retry()
    expect(asked).toEqual(['run', `rejoin after ${first - 1}`])
    expect(shown(chat)).toEqual(whole)
    expect(chat.getSnapshot().status).toBe('ready')
  })
}

test('where there is nothing to take up, retry() repeats the request', async () => {
  const { url, asked } = await startServer(story, 7, false)
  const chat = new ChatClient({ connection: fetchServerSentEvents(url, { rejoin: true }) })
  await chat.sendMessage('Read it.')
  await chat.retry()
  expect(asked).toEqual(['run', 'rejoin after 6', 'run'])
  expect(shown(chat)).toEqual(whole)
})

const html = { headers: { 'content-type': 'text/html' } }
const events = { headers: { 'content-type': 'text/event-stream' } }

test.each<[string, () => Response]>([
  ['401', () => new Response(null, { status: 401 })],
  ['404', () => new Response(null, { status: 404 })],
  ['429', () => new Response(null, { status: 429 })],
  ['503', () => new Response(null, { status: 503 })],
  ['a login page', () => new Response('<html>', html)],
  ['a stream that ends before its first event', () => new Response(': rejoined\n\n', events)],
])(
  'F13 a run is not asked for again because its rejoin gets %s: the next retry() rejoins it',
  async (_, refuse) => {
    const { url, asked } = await startServer(story, 7)
    let refusals = 0
    const client: typeof fetch = (input, init) =>
      refusals-- > 0 ? Promise.resolve(refuse()) : fetch(input, init)
    const chat = new ChatClient({ connection: fetchServerSentEvents(url, { rejoin: true, fetch: client }) })
    await chat.sendMessage('Read it.')
    refusals = 2
    for (let at = 0; at < 2; at++) {
      await chat.retry()
      expect(chat.getSnapshot().status).toBe('error')
    }
    await chat.retry()
    expect(asked).toEqual(['run', 'rejoin after 6'])
    expect(shown(chat)).toEqual(whole)
  },
)

test('F13 a request that is answered with a stream without events is looked for before it is repeated', async () => {
  const { url, asked } = await startServer(story, 0)
  let isFirst = true
  const client: typeof fetch = async (input, init) => {
    const response = await fetch(input, init)
    if (!isFirst) return response
    isFirst = false
    return new Response('', events)
  }
  const chat = new ChatClient({ connection: fetchServerSentEvents(url, { rejoin: true, fetch: client }) })
  expect(await chat.sendMessage('Read it.')).toMatchObject({ error: { code: 'empty-response' } })
  await chat.retry()
  expect(asked).toEqual(['run', 'rejoin after -1'])
  expect(shown(chat)).toEqual(whole)
})

test('F13 after stop(), retry() reads what a run whose stream broke off has done, and does not ask anew', async () => {
  const { url, asked } = await startServer(story, 7)
  const chat = new ChatClient({ connection: fetchServerSentEvents(url, { rejoin: true }) })
  await chat.sendMessage('Read it.')
  chat.stop()
  await chat.retry()
  expect(asked).toEqual(['run', 'stop', 'rejoin after 6'])
  expect(shown(chat)).toEqual(whole)
})

test('a user who goes on instead lets the broken run go: its half call is cancelled', async () => {
  const { url, asked } = await startServer(story, 7)
  const chat = new ChatClient({ connection: fetchServerSentEvents(url, { rejoin: true }) })
  await chat.sendMessage('Read it.')
  await chat.sendMessage('Never mind.')
  expect(asked).toEqual(['run', 'run'])
  const calls = chat
    .getSnapshot()
    .messages.flatMap(({ parts }) => parts.filter((part) => part.type === 'tool-call'))
  expect(calls.map(({ state }) => state)).toEqual(['cancelled', 'complete'])
})

test('a connection that does not rejoin repeats the request', async () => {
  const { url, asked } = await startServer(story, 7)
  const chat = new ChatClient({ connection: fetchServerSentEvents(url) })
  await chat.sendMessage('Read it.')
  await chat.retry()
  expect(asked).toEqual(['run', 'run'])
  expect(chat.getSnapshot().status).toBe('ready')
})

test('a run that was finished before its stream broke is not asked for again', async () => {
  const { asked, url } = await startServer(story, 11)
  const chat = new ChatClient({ connection: fetchServerSentEvents(url, { rejoin: true }) })
  expect(await chat.sendMessage('go')).toEqual({ status: 'sent' })
  await chat.retry()
  expect(asked).toEqual(['run'])
  expect(chat.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
})

test('the answer to a question that a run took along is settled when that run was taken up again', async () => {
  const resumes: unknown[] = []
  const run = (input: RunAgentInput) => ({ threadId: input.threadId, runId: input.runId })
  const connection = stream(async function* (input) {
    resumes.push(input.resume?.map(({ interruptId }) => interruptId))
    yield { type: 'RUN_STARTED', ...run(input) }
    if (resumes.length > 1) throw new Error('the network is gone')
    const interrupts = [{ id: 'q1', reason: 'confirmation', message: 'Sure?' }]
    yield { type: 'RUN_FINISHED', ...run(input), outcome: { type: 'interrupt', interrupts } }
  })
  async function* rest({ threadId, runId }: RunCursor) {
    yield { type: 'RUN_FINISHED', threadId, runId }
  }
  const chat = new ChatClient({ connection: { ...connection, rejoin: rest } })
  await chat.sendMessage('go')
  await chat.respondToInterrupt({ id: 'q1', payload: 1 })
  await chat.retry()
  expect(chat.getSnapshot().status).toBe('ready')
  await chat.retry()
  expect(resumes).toEqual([undefined, ['q1']])
})
