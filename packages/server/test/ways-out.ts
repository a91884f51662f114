import { createServer } from 'node:http'
import { Duplex } from 'node:stream'
import { handleAiSdkChat } from '@countersign/ai-sdk/server'
import { type AnyServerTool, isRecord, type RunAgentInput } from '@countersign/core'
import { type Agent, handleChat, rejoinResponse, type ServerSocket, serveSocket } from '@countersign/server'
import { toNodeHandler } from '@countersign/server/node'
import { type PlannedCall, planFromMap, runPlan } from '@countersign/server/plan'

/** A value that a writer of a run has said: its writer, its number from 0, and something to make it large. */
export interface Said {
  readonly writer: string
  readonly n: number
  readonly pad: string
}

/** Somebody at the other end of a way out, who takes one thing after another. */
export interface Peer {
  /** What came next, whatever it is: several events, none (a comment), or `end`. Rejects where the way out broke off. */
  read(): Promise<readonly unknown[] | 'end'>
  /** Goes away. */
  leave(): void
  /** Whether the server still waits for the other end to take something; where it can be seen. */
  readonly isHeld?: (() => boolean) | undefined
}

export interface WayOut {
  readonly name: string
  /** Bytes that may be on their way beyond the run's own buffer: further buffers, documented ones. One value more may be in each. */
  readonly buffers: readonly number[]
  /** Whether a reader that comes back is told that it was too slow; to others the way out is closed. */
  readonly tellsLoss: boolean
  /** Whether the model is heard, or the tools alone. */
  readonly hearsModel: boolean
  open(agent: Agent, given: RunAgentInput, tools: readonly AnyServerTool[]): Peer
}

export const context = { subject: 'ann' }
const KIB = 1024
/** Of the numbered events of a served run, which are sent in batches: of those that wait, and of the batch beyond them. */
const BATCH = 64 * KIB
const SERVED = 64 * KIB + BATCH

const request = (body: unknown) =>
  new Request('http://localhost/', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

const ofIterator = (events: AsyncIterator<unknown>): Peer => ({
  async read() {
    const { done, value } = await events.next()
    return done ? 'end' : [value]
  },
  leave: () => void events.return?.(),
})

/** The JSON of the frames in a text that is cut anywhere. */
function frameReader(): (text: string) => readonly unknown[] {
  let rest = ''
  return (text) => {
    const frames = (rest + text).split('\n\n')
    rest = frames.pop() ?? ''
    return frames.flatMap((frame) => {
      const data = frame.split('\n').find((line) => line.startsWith('data: '))
      return data === undefined || data === 'data: [DONE]' ? [] : [JSON.parse(data.slice(6))]
    })
  }
}

function ofResponse(responding: Promise<Response>): Peer {
  const frames = frameReader()
  const utf8 = new TextDecoder()
  const reading = responding.then(({ body }) => body?.getReader())
  return {
    async read() {
      const { done, value } = (await (await reading)?.read()) ?? { done: true, value: undefined }
      return done ? 'end' : frames(utf8.decode(value, { stream: true }))
    },
    // to cancel what has failed rejects with why it failed
    leave: () => void reading.then((reader) => reader?.cancel()).catch(() => {}),
  }
}

/** A response whose peer takes one write after another: what Node has of a connection, with a small buffer. */
function ofNode(agent: Agent, given: RunAgentInput): Peer {
  const arrived: string[] = []
  let taken = () => {}
  let look = () => {}
  let closed = false
  const over = () => {
    closed = true
    look()
  }
  const connection = new Duplex({
    highWaterMark: KIB,
    read() {},
    write(chunk, _, written) {
      arrived.push(String(chunk))
      taken = written
      look()
    },
    final(done) {
      over()
      done()
    },
    destroy(error, done) {
      over()
      done(error)
    },
  })
  connection.on('error', () => {})
  const server = createServer(toNodeHandler(agent, { context: () => context }))
  server.emit('connection', connection)
  const body = JSON.stringify(given)
  const head = ['POST / HTTP/1.0', 'content-type: application/json', `content-length: ${body.length}`]
  connection.push(`${head.join('\r\n')}\r\n\r\n${body}`)
  const frames = frameReader()
  let inHead = true
  return {
    async read() {
      while (arrived.length === 0 && !closed)
        await new Promise<void>((resolve) => {
          look = resolve
        })
      if (arrived.length === 0) return 'end'
      const text = arrived.splice(0).join('')
      taken()
      if (!inHead) return frames(text)
      inHead = false
      return frames(text.slice(text.indexOf('\r\n\r\n') + 4))
    },
    leave: () => connection.destroy(),
    isHeld: () => connection.writableNeedDrain && !connection.destroyed,
  }
}

/** A socket whose peer takes one frame after another. */
function ofSocket(agent: Agent, given: RunAgentInput): Peer {
  const sent: string[] = []
  const listeners: { [type: string]: ((event: { readonly data: unknown }) => void)[] } = {}
  let look = () => {}
  const close = () => {
    if (socket.readyState !== 1) return
    socket.readyState = 3
    for (const listener of listeners.close ?? []) listener({ data: undefined })
    look()
  }
  const socket = {
    readyState: 1,
    get bufferedAmount() {
      return sent.reduce((sum, frame) => sum + frame.length, 0)
    },
    send(frame: string) {
      sent.push(frame)
      look()
    },
    close,
    addEventListener(type: string, listener: (event: { readonly data: unknown }) => void) {
      listeners[type] = [...(listeners[type] ?? []), listener]
    },
  } satisfies ServerSocket & { readyState: number }
  const opened = new Request('http://localhost/', { headers: { host: 'localhost' } })
  serveSocket(agent, socket, opened, { context: () => context })
  for (const listener of listeners.message ?? [])
    listener({ data: JSON.stringify({ type: 'run', input: given }) })
  return {
    async read() {
      while (sent.length === 0 && socket.readyState === 1)
        await new Promise<void>((resolve) => {
          look = resolve
        })
      const text = sent.shift()
      if (text === undefined) return 'end'
      const frame = JSON.parse(text)
      if (frame.type === 'events') return frame.events
      if (frame.type === 'end') return 'end'
      throw new Error(text)
    },
    leave: close,
  }
}

/** A run that somebody else reads as fast as it comes; its peer follows the record of it. */
function ofRunLog(agent: Agent, given: RunAgentInput): Peer {
  const first = ofResponse(handleChat(agent, request(given), { context }))
  const { threadId, runId } = given
  const rest = first.read().then(() => {
    void (async () => {
      while ((await first.read()) !== 'end');
    })().catch(() => {})
    const url = `http://localhost/?threadId=${threadId}&runId=${runId}`
    return rejoinResponse(agent, new Request(url), { context })
  })
  const peer = ofResponse(rest)
  return {
    read: peer.read,
    leave() {
      peer.leave()
      void rest.then(first.leave)
    },
  }
}

function ofPlan(tools: readonly AnyServerTool[]): Peer {
  const calls = tools.map(
    ({ name }): PlannedCall => ({ toolCallId: name, toolName: name, arguments: '{}', input: {} }),
  )
  return ofIterator(runPlan(planFromMap(() => false, {})(calls), { tools }))
}

const aiSdkBody = ({ threadId }: RunAgentInput) => ({
  id: threadId,
  messages: [{ id: 'u', role: 'user', parts: [{ type: 'text', text: 'go' }] }],
})

/** Every way by which a run leaves the server. NDJSON is none of them: it is what a client can read, and an application can write. */
export const waysOut: readonly WayOut[] = [
  {
    name: 'agent.run',
    tellsLoss: true,
    buffers: [],
    hearsModel: true,
    open: (agent, given) => ofIterator(agent.run(given, { context })),
  },
  {
    name: 'event stream',
    tellsLoss: true,
    // of the response's body nothing but the batch that is asked for
    buffers: [SERVED, BATCH],
    hearsModel: true,
    open: (agent, given) => ofResponse(handleChat(agent, request(given), { context, live: true })),
  },
  {
    name: 'event stream of Node',
    tellsLoss: false,
    buffers: [SERVED, BATCH, KIB],
    hearsModel: true,
    open: (agent, given) => ofNode(agent, given),
  },
  {
    name: 'WebSocket',
    tellsLoss: false,
    // a socket counts bytes, one for each of these characters, and we two
    buffers: [SERVED, 2 * 1024 * KIB + BATCH],
    hearsModel: true,
    open: (agent, given) => ofSocket(agent, given),
  },
  {
    name: 'AI SDK',
    tellsLoss: true,
    buffers: [SERVED, BATCH],
    hearsModel: true,
    open: (agent, given) => ofResponse(handleAiSdkChat(agent, request(aiSdkBody(given)))),
  },
  {
    name: 'run log',
    tellsLoss: false,
    buffers: [Number.POSITIVE_INFINITY],
    hearsModel: true,
    open: (agent, given) => ofRunLog(agent, given),
  },
  {
    name: 'runPlan',
    tellsLoss: true,
    buffers: [],
    hearsModel: false,
    open: (_, __, tools) => ofPlan(tools),
  },
]

/** What an event, or a chunk of the AI SDK, repeats of what a writer said. */
export function saidIn(event: unknown): Said | undefined {
  if (!isRecord(event)) return undefined
  const { type, delta, value, preliminary, output, data } = event
  if (type === 'TEXT_MESSAGE_CONTENT' || type === 'text-delta')
    return typeof delta === 'string' && delta.startsWith('{') ? JSON.parse(delta) : undefined
  const told = type === 'CUSTOM' && isRecord(value) ? value.data : type === 'progress' ? data : output
  if (type === 'tool-output-available' && preliminary !== true) return undefined
  return isRecord(told) && typeof told.writer === 'string' ? (told as unknown as Said) : undefined
}

/** Whether a run has said that it is over, and how. */
export function endIn(event: unknown): 'finished' | 'error' | undefined {
  const type = isRecord(event) ? event.type : undefined
  if (type === 'RUN_FINISHED' || type === 'finish') return 'finished'
  return type === 'RUN_ERROR' || type === 'error' ? 'error' : undefined
}
