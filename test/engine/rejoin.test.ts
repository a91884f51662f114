import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { ChatClient, type Connection, fetchServerSentEvents } from '@countersign/client'
import {
  type AgentOptions,
  createAgent,
  type ModelEvent,
  memoryLedger,
  memoryRunLog,
} from '@countersign/server'
import { toNodeHandler } from '@countersign/server/node'
import { passMacrotasks, until } from '@countersign/testing'
import { expect, onTestFinished, test } from 'vitest'
import { call, calls, lastText, mailTool, pendingId, says, scriptedModel, states } from './engine.js'
import { listening } from './listening.js'

/** A model whose text comes in pieces that the test hands out. */
function talkingModel() {
  const pieces: string[] = []
  let ended = false
  let wake = () => {}
  let stopped = false
  const model: AgentOptions['model'] = {
    id: 'test/talking',
    async *stream(_, { signal }): AsyncGenerator<ModelEvent> {
      signal.addEventListener('abort', () => {
        stopped = true
        wake()
      })
      while (!signal.aborted) {
        const delta = pieces.shift()
        if (delta !== undefined) yield { type: 'text-delta', delta }
        else if (ended) break
        else
          await new Promise<void>((resolve) => {
            wake = resolve
          })
      }
      yield { type: 'finish', reason: 'stop' }
    },
  }
  return {
    model,
    say(piece: string) {
      pieces.push(piece)
      wake()
    },
    end() {
      ended = true
      wake()
    },
    get stopped() {
      return stopped
    },
  }
}

/** An agent behind a real server whose connections can be cut; the person comes from a header. */
async function serve(options: Partial<AgentOptions> & Pick<AgentOptions, 'model'>, goOnFor = 60_000) {
  const agent = createAgent({
    warn: () => {},
    runLog: memoryRunLog(),
    approvals: { ledger: memoryLedger() },
    ...options,
  })
  const handler = toNodeHandler(agent, {
    context: ({ headers }) => ({ subject: String(headers['x-user'] ?? 'ann') }),
    goOnFor,
  })
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.headers['last-event-id'] ?? ''}`.trim())
    return handler(request, response)
  })
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  const url = `http://${await listening(server)}/`
  const connection = (user = 'ann') =>
    fetchServerSentEvents(url, { rejoin: true, headers: { 'x-user': user } })
  return {
    url,
    asked,
    connected: () => sockets.size,
    connection,
    cut: () => {
      for (const socket of sockets) socket.destroy()
    },
    chat: (user?: string) => {
      const chat = new ChatClient({ connection: connection(user), threadId: 'thread' })
      onTestFinished(chat.dispose)
      return chat
    },
  }
}

/** A chat whose reply has begun with "one ". */
async function startTelling() {
  const talk = talkingModel()
  const { chat: open, ...served } = await serve({ model: talk.model })
  const chat = open()
  const sent = chat.sendMessage('Tell me.')
  talk.say('one ')
  await until(chat, () => lastText(chat) === 'one ')
  return { ...served, talk, chat, sent }
}

const nothing = { messages: [], headers: {} }

/** The types of the events that a rejoin gives, until it ends. */
async function rejoin(
  connection: ReturnType<typeof fetchServerSentEvents>,
  runId: string,
  lastEventId?: string,
): Promise<{ type: string; delta?: string }[]> {
  const cursor = { threadId: 'thread', runId, ...(lastEventId !== undefined && { lastEventId }) }
  const events: { type: string; delta?: string }[] = []
  const { signal } = new AbortController()
  for await (const batch of connection.rejoin?.(cursor, { ...nothing, signal }) ?? []) {
    events.push(...(batch as { type: string }[]))
  }
  return events
}

const textOf = (events: readonly { delta?: string }[]) => events.map(({ delta = '' }) => delta).join('')

test('a connection that is cut in mid-stream: the run goes on, and retry() takes it up where it stopped', async () => {
  const { talk, chat, sent, asked, cut } = await startTelling()
  cut()
  expect((await sent).status).toBe('failed')
  expect(chat.getSnapshot().status).toBe('error')
  talk.say('two ')
  talk.say('three')
  talk.end()
  await chat.retry()
  expect(lastText(chat)).toBe('one two three')
  expect(chat.getSnapshot().status).toBe('ready')
  expect(asked[0]).toBe('POST')
  expect(asked[1]).toMatch(/^GET .+:3$/)
  expect(asked).toHaveLength(2)
})

test('a run that is still open when it is taken up is followed to its end', async () => {
  const { talk, chat, sent, cut } = await startTelling()
  cut()
  await sent
  const retried = chat.retry()
  talk.say('two')
  await until(chat, () => lastText(chat) === 'one two')
  expect(chat.getSnapshot().isLoading).toBe(true)
  talk.end()
  await retried
  expect(chat.getSnapshot().status).toBe('ready')
})

test.each(['open', 'cut'])(
  'stop() ends a run that would go on without a reader, also while another page reads it: its stream is %s',
  async (state) => {
    const { talk, chat, sent, connection, cut } = await startTelling()
    const runId = String(chat.inspect().openRun)
    if (state === 'cut') {
      cut()
      await sent
    }
    const other = rejoin(connection(), runId)
    await passMacrotasks(2)
    chat.stop()
    await expect.poll(() => talk.stopped).toBe(true)
    expect((await other).at(-1)?.type).toBe('RUN_FINISHED')
    expect(lastText(chat)).toBe('one ')
  },
)

test('a user who stops a run stops none of another user', async () => {
  const { talk, chat, sent, connection } = await startTelling()
  const run = { threadId: 'thread', runId: String(chat.inspect().openRun) }
  await connection('bob').stop?.(run, nothing)
  talk.say('two')
  talk.end()
  expect(await sent).toEqual({ status: 'sent' })
  expect(lastText(chat)).toBe('one two')
})

test('a page that was reloaded in mid-stream reads the run from its first event on', async () => {
  const { talk, chat, sent, connection, cut } = await startTelling()
  const runId = String(chat.inspect().openRun)
  cut()
  await sent
  const again = rejoin(connection(), runId)
  talk.say('two')
  talk.end()
  const events = await again
  expect(events[0]?.type).toBe('RUN_STARTED')
  expect(events.at(-1)?.type).toBe('RUN_FINISHED')
  expect(textOf(events)).toBe('one two')
})

test('a second tab reads along with the first, and both see all of it', async () => {
  const { talk, chat, sent, connection } = await startTelling()
  const second = rejoin(connection(), String(chat.inspect().openRun))
  await passMacrotasks(2)
  talk.say('two')
  talk.end()
  expect(textOf(await second)).toBe('one two')
  await sent
  expect(lastText(chat)).toBe('one two')
})

test('a run of another user is as one that never was', async () => {
  const { talk, chat, sent, connection } = await startTelling()
  const runId = String(chat.inspect().openRun)
  expect(await rejoin(connection('bob'), runId)).toEqual([])
  expect(await rejoin(connection('ann'), 'unknown')).toEqual([])
  talk.end()
  await sent
  expect(await rejoin(connection('bob'), runId)).toEqual([])
  expect(await rejoin(connection('ann'), runId)).not.toEqual([])
})

test('where the server no longer knows the run, retry() repeats the request', async () => {
  const talk = talkingModel()
  const {
    chat: open,
    asked,
    cut,
  } = await serve({ model: talk.model, runLog: memoryRunLog({ maxRunSize: 1 }) })
  const chat = open()
  const sent = chat.sendMessage('Tell me.')
  talk.say('one')
  await until(chat, () => lastText(chat) === 'one')
  cut()
  await sent
  talk.end()
  await chat.retry()
  expect(asked.map((line) => line.split(' ')[0])).toEqual(['POST', 'GET', 'POST'])
  expect(chat.getSnapshot().status).toBe('ready')
})

test('an answer whose connection is cut while its tool runs: the tool runs once, and its result is taken up', async () => {
  const { mail, sent } = mailTool()
  let finish = () => {}
  const held = new Promise<void>((resolve) => {
    finish = resolve
  })
  const slowMail = {
    ...mail,
    execute: async (input: { to: string }, context: Parameters<typeof mail.execute>[1]) => {
      const done = await mail.execute(input, context)
      await held
      return done
    },
  }
  const model = scriptedModel([calls(call('c1', 'send_email', { to: 'a@example.org' })), says('Sent.')])
  // without goOnFor: the model stops with its reader, the claimed tool does not
  const { chat: open, cut } = await serve({ model, tools: [slowMail] }, 0)
  const chat = open()
  await chat.sendMessage('go')
  const answered = chat.addToolApprovalResponse({ id: pendingId(chat), approved: true })
  await expect.poll(() => sent.length).toBe(1)
  cut()
  expect((await answered).status).toBe('failed')
  const retried = chat.retry()
  await passMacrotasks(5)
  finish()
  await retried
  expect(sent).toEqual(['a@example.org'])
  expect(states(chat)).toEqual(['send_email:complete'])
})

test('without goOnFor a reader that goes stops the model; with it the model goes on for that long', async () => {
  for (const [goOnFor, stops] of [
    [0, true],
    [60_000, false],
  ] as const) {
    const talk = talkingModel()
    const { chat: open, cut } = await serve({ model: talk.model }, goOnFor)
    const chat = open()
    const sent = chat.sendMessage('Tell me.')
    talk.say('one ')
    await until(chat, () => lastText(chat) === 'one ')
    cut()
    await sent
    if (stops) await expect.poll(() => talk.stopped).toBe(true)
    else {
      await passMacrotasks(10)
      expect(talk.stopped).toBe(false)
    }
    talk.end()
  }
})

test('the time that a run goes on for ends it', async () => {
  const talk = talkingModel()
  const { chat: open, cut } = await serve({ model: talk.model }, 30)
  const chat = open()
  const sent = chat.sendMessage('Tell me.')
  talk.say('one ')
  await until(chat, () => lastText(chat) === 'one ')
  cut()
  await sent
  await expect.poll(() => talk.stopped).toBe(true)
})

test('a run goes on as long as anybody reads it, whoever began, and stops with its last reader', async () => {
  const talk = talkingModel()
  const { connection, connected } = await serve({ model: talk.model }, 0)
  const closed = new AbortController()
  const page: Connection = {
    connect: (input, options) => connection().connect(input, { ...options, signal: closed.signal }),
  }
  const chat = new ChatClient({ connection: page, threadId: 'thread' })
  void chat.sendMessage('Tell me.')
  talk.say('one ')
  await until(chat, () => lastText(chat) === 'one ')
  const reading = new AbortController()
  const cursor = { threadId: 'thread', runId: String(chat.inspect().openRun) }
  const events: { delta?: string }[] = []
  const read = async () => {
    const rest = connection().rejoin?.(cursor, { ...nothing, signal: reading.signal }) ?? []
    for await (const batch of rest) events.push(...(batch as { delta?: string }[]))
  }
  const ended = read().catch(() => {})
  await expect.poll(() => textOf(events)).toBe('one ')
  closed.abort()
  await expect.poll(connected).toBe(1)
  await passMacrotasks(2)
  talk.say('two')
  await expect.poll(() => textOf(events)).toBe('one two')
  expect(talk.stopped).toBe(false)
  reading.abort()
  await ended
  await expect.poll(() => talk.stopped).toBe(true)
})
