// What an attacker has: every byte of a request. Also an honest client, to bring a question about and to see that the server lives.
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { WebSocket } from 'ws'

let runs = 0

/** A client of the server at `port`; what the server says is told to `record`. */
export function clientOf(port, record) {
  /** One request. `body` is text, bytes, or a value to be written as JSON; `user` null: not signed in. */
  function send(path, { method = 'POST', user = 'ann', headers = {}, body, onEvent } = {}) {
    const bytes =
      body === undefined || typeof body === 'string' || body instanceof Uint8Array
        ? body
        : JSON.stringify(body)
    const own = {
      'content-type': 'application/json',
      ...(bytes !== undefined && { 'content-length': Buffer.byteLength(bytes) }),
      ...(user !== null && { 'x-user': user }),
      ...headers,
    }
    return new Promise((resolve) => {
      const request = httpRequest(
        { host: '127.0.0.1', port, path, method, headers: own },
        async (response) => {
          const text = []
          const reader = frameReader(onEvent)
          response.setEncoding('utf8')
          try {
            for await (const chunk of response) {
              text.push(chunk)
              reader.push(chunk)
            }
          } catch (error) {
            record.crash(error)
          }
          resolve(answered(response, text.join(''), reader.events, record))
        },
      )
      // once the server has answered, it may refuse the rest of what is sent
      request.on('error', (error) => {
        if (!request.res) {
          record.crash(error)
          resolve({ status: 0, events: [] })
        }
      })
      request.end(bytes)
    })
  }

  /** A chat request. */
  const run = (messages, { user, path = '/chat', headers, onEvent, ...more } = {}) =>
    send(path, { user, headers, onEvent, body: input(messages, more) })

  return {
    port,
    send,
    run,
    /** Makes the model call a tool, and hands over the question with the history an honest client keeps. */
    async ask(name, args, { user, threadId = 'thread', id, ...more } = {}) {
      const start = [say({ calls: [{ name, arguments: args, ...(id !== undefined && { id }), ...more }] })]
      const { events } = await run(start, { user, threadId })
      return { asked: requests(events)[0], history: fold(start, events), threadId, user, events }
    },
    /** Answers a question the way an honest client does; whatever is altered comes after. */
    answer({ asked, history, threadId, user }, payload, more = {}) {
      return run(more.history ?? history, { threadId, user, resume: [entry(asked, payload)], ...more })
    },
    socket: (headers = {}) => openSocket(port, headers),
    raw: (bytes, how) => sendRaw(port, bytes, how, record),
  }
}

/** A `RunAgentInput`. */
export function input(messages, more = {}) {
  return {
    threadId: 'thread',
    runId: `run_${++runs}`,
    protocolVersion: '1.0',
    messages,
    tools: [],
    context: [],
    state: {},
    forwardedProps: {},
    ...more,
  }
}

/** A message of the user; an object is a script for the model. */
export function say(what) {
  return { id: `u${++runs}`, role: 'user', content: typeof what === 'string' ? what : JSON.stringify(what) }
}

export const yes = { approved: true }
export const no = { approved: false }

/** The entry of `resume` that an honest client sends; `token` null: without one. */
export function entry({ approval }, payload = yes, token = approval.token) {
  const metadata = token === null ? {} : { metadata: { countersign: { token } } }
  return { interruptId: approval.id, status: 'resolved', payload, ...metadata }
}

/** A copy of a history with each call changed. */
export function alter(history, change) {
  const copy = structuredClone(history)
  for (const { toolCalls = [] } of copy) for (const call of toolCalls) change(call)
  return copy
}

/** A history without anything that the server put on its calls. */
export const bare = (history) =>
  alter(history, (call) => {
    delete call.metadata
  })

/** A tool message. */
export const result = (toolCallId, content) => ({
  id: `t${++runs}`,
  role: 'tool',
  toolCallId,
  content: typeof content === 'string' ? content : JSON.stringify(content),
})

/** An assistant message with one call. */
export const called = (name, args, { id = 'x1', countersign } = {}) => ({
  id: `a${++runs}`,
  role: 'assistant',
  toolCalls: [
    {
      id,
      type: 'function',
      function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
      ...(countersign !== undefined && { metadata: { countersign } }),
    },
  ],
})

/** The questions in a run's events. */
export const requests = (events) =>
  events.flatMap(({ type, name, value }) =>
    type === 'CUSTOM' && name === 'approval-requested' ? [value] : [],
  )

/** The results in a run's events: parsed, or the text that they are. */
export const results = (events) =>
  events.flatMap(({ type, toolCallId, content, metadata }) =>
    type === 'TOOL_CALL_RESULT'
      ? [{ toolCallId, content: parsedOrText(content), own: metadata?.countersign }]
      : [],
  )

function parsedOrText(content) {
  try {
    return JSON.parse(content)
  } catch {
    return content
  }
}

/** What a client keeps of a run: the history with the run's own messages. */
export function fold(history, events) {
  const messages = structuredClone(history)
  const assistant = (id) => {
    const known = messages.find((message) => message.id === id)
    if (known === undefined) messages.push({ id, role: 'assistant' })
    return known ?? messages.at(-1)
  }
  const find = (id) => messages.flatMap(({ toolCalls = [] }) => toolCalls).findLast((call) => call.id === id)
  for (const event of events) {
    const { type, toolCallId, metadata } = event
    if (type === 'TEXT_MESSAGE_CONTENT') {
      const message = assistant(event.messageId)
      message.content = (message.content ?? '') + event.delta
    }
    if (type === 'TOOL_CALL_START') {
      const message = assistant(event.parentMessageId)
      message.toolCalls ??= []
      message.toolCalls.push({
        id: toolCallId,
        type: 'function',
        function: { name: event.toolCallName, arguments: '' },
      })
    }
    if (type === 'TOOL_CALL_ARGS') find(toolCallId).function.arguments += event.delta
    if ((type === 'TOOL_CALL_START' || type === 'TOOL_CALL_END') && metadata !== undefined)
      find(toolCallId).metadata = { ...find(toolCallId).metadata, ...metadata }
    if (type === 'TOOL_CALL_RESULT')
      messages.push({
        id: event.messageId,
        role: 'tool',
        toolCallId,
        content: event.content,
        ...(metadata && { metadata }),
      })
  }
  return messages
}

function frameReader(onEvent = () => {}) {
  const events = []
  let rest = ''
  return {
    events,
    push(chunk) {
      const frames = (rest + chunk).split('\n\n')
      rest = frames.pop()
      for (const frame of frames) {
        const at = frame.indexOf('data: ')
        // the AI SDK ends its streams with a word
        if (at < 0 || frame.endsWith('data: [DONE]')) continue
        const event = JSON.parse(frame.slice(at + 6))
        events.push(event)
        onEvent(event)
      }
    },
  }
}

function answered({ statusCode: status, headers }, text, events, record) {
  if (headers['content-type']?.startsWith('text/event-stream')) {
    record.events(events)
    return { status, events }
  }
  const body = text === '' ? undefined : JSON.parse(text)
  if (status >= 500) record.crash(new Error(`HTTP ${status}: ${text}`))
  if (body?.error !== undefined) record.refused(body.error.code)
  return { status, events, body }
}

/**
 * Bytes on a connection of their own. `byteBy`: so many at a time, a moment between them; `hangUpAfter`: milliseconds until this side leaves,
 * where the server does not. Resolves with the status of the first answer, 0 where there was none.
 */
async function sendRaw(port, bytes, { byteBy = bytes.length, hangUpAfter = 2000 } = {}, record) {
  const socket = connect(port, '127.0.0.1')
  const text = []
  socket.setEncoding('utf8').on('data', (chunk) => text.push(chunk))
  const closed = new Promise((resolve) => socket.on('close', resolve))
  // a server that has refused does not read the rest
  socket.on('error', () => {})
  for (let at = 0; at < bytes.length && !socket.destroyed; at += byteBy) {
    socket.write(bytes.slice(at, at + byteBy))
    if (byteBy < bytes.length) await pause(2)
  }
  await Promise.race([closed, pause(hangUpAfter)])
  socket.destroy()
  const said = text.join('')
  const status = Number(/^HTTP\/1\.1 (\d+)/.exec(said)?.[1] ?? 0)
  const code = /"error":\{"code":"([\w-]+)"/.exec(said)?.[1]
  if (code !== undefined) record.refused(code)
  return { status, text: said }
}

/** A WebSocket and the frames that came, with a way to wait for one. */
function openSocket(port, headers) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/socket`, { headers })
  const frames = []
  const watchers = new Set()
  socket.on('message', (data) => {
    frames.push(JSON.parse(String(data)))
    for (const watch of watchers) watch()
  })
  const closed = new Promise((resolve) => socket.on('close', resolve))
  socket.on('error', () => {})
  return {
    opened: new Promise((resolve) => socket.on('open', resolve)),
    closed,
    frames,
    send: (frame) => socket.send(JSON.stringify(frame)),
    close: () => socket.terminate(),
    /** The first frame that `test` says yes to, or nothing once the socket has closed. */
    frame: (test) =>
      new Promise((resolve) => {
        const watch = () => {
          const found = frames.find(test)
          if (found !== undefined) resolve(found)
        }
        watchers.add(watch)
        watch()
        void closed.then(() => resolve(undefined))
      }),
  }
}
