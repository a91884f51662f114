import {
  type ClientFrame,
  CountersignError,
  isCountersignError,
  isRefusal,
  omitUndefined,
  type ServerFrame,
} from '@countersign/core'
import type { ConnectOptions, LiveAnswers } from './connection.js'
import { readFrame } from './web-socket-frames.js'
import type { SocketRun } from './web-socket-run.js'

/** What is used of a `WebSocket`; the platform's, and that of the package `ws`, fit as they are. */
export interface WebSocketLike {
  readonly readyState: number
  send(data: string): void
  close(): void
  addEventListener(type: 'open' | 'error', listener: () => void): void
  addEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void
  addEventListener(
    type: 'close',
    listener: (event: { readonly code: number; readonly reason: string }) => void,
  ): void
}

/** The code that closes a socket whose message was larger than the other side takes (RFC 6455, 7.4.1). */
const MESSAGE_TOO_BIG = 1009

/** `readyState` of a socket that takes messages. */
const OPEN = 1

/** One socket and the runs on it. It is never opened again: what comes after it gets another one. */
export interface SocketLink {
  /** Whether another run may begin on it. */
  usable(): boolean
  start(run: SocketRun): void
  /** Nobody reads the run any more: informs the server, unless it knows. */
  leave(run: SocketRun): void
  answer(answers: LiveAnswers, options: Pick<ConnectOptions, 'headers'>): Promise<void>
  close(why: CountersignError): void
}

interface LinkOptions {
  /** Where to, asked once. */
  target(): Promise<string>
  open(url: string): WebSocketLike
  /** UTF-16 units of one message. */
  maxFrame: number
  /** Milliseconds without a run after which the socket is closed. */
  keepAlive: number
}

type LinkState =
  | { readonly phase: 'opening'; readonly socket?: WebSocketLike }
  | { readonly phase: 'open'; readonly socket: WebSocketLike }
  | { readonly phase: 'closed' }

interface SentAnswer {
  readonly runId: string
  resolve(): void
  reject(error: CountersignError): void
}

export function createLink(options: LinkOptions): SocketLink {
  const runs = new Map<string, SocketRun>()
  const answers = new Map<string, SentAnswer>()
  let state: LinkState = { phase: 'opening' }
  let idle: ReturnType<typeof setTimeout> | undefined
  /** Answers that were given before the socket was open. */
  let early: ClientFrame[] = []
  let answered = 0

  async function open(): Promise<void> {
    const url = await options.target()
    if (state.phase === 'closed') return
    const socket = options.open(url)
    state = { phase: 'opening', socket }
    socket.addEventListener('open', () => opened(socket))
    socket.addEventListener('message', ({ data }) => receive(data))
    // What is to be said of an error is said by the `close` that follows it; where nobody listens, `ws` throws it.
    socket.addEventListener('error', () => {})
    socket.addEventListener('close', ({ code, reason }) => {
      const refusal = code === MESSAGE_TOO_BIG ? 'request-too-large' : reason
      if (refusal === 'request-too-large' || refusal === 'invalid-request') refuseLargest(refusal)
      close(broken(url, state.phase, code, reason))
    })
  }

  function opened(socket: WebSocketLike): void {
    if (state.phase === 'closed') return
    state = { phase: 'open', socket }
    for (const run of runs.values()) socket.send(run.request)
    for (const frame of early) send(frame)
    early = []
  }

  function send(frame: ClientFrame): void {
    if (state.phase === 'open') state.socket.send(JSON.stringify(frame))
  }

  function receive(data: unknown): void {
    if (state.phase === 'closed') return
    try {
      const frame = readFrame(data, options.maxFrame)
      if (frame) take(frame, typeof data === 'string' ? data.length : 0)
    } catch (error) {
      if (!isCountersignError(error)) throw error
      close(error)
    }
  }

  function take(frame: ServerFrame, size: number): void {
    switch (frame.type) {
      case 'events':
        runs.get(frame.runId)?.push(frame.events, size, frame.id)
        return
      case 'end':
        finish(frame.runId)
        return
      case 'answered':
        answers.get(frame.id)?.resolve()
        answers.delete(frame.id)
        return
      case 'refused':
        answers.get(frame.id)?.reject(refused(frame.code, frame.message))
        answers.delete(frame.id)
        return
      case 'error': {
        const { code, status, message } = frame
        const error = new CountersignError('run-error', message, omitUndefined({ code, status }))
        if (frame.runId === undefined) close(error)
        else finish(frame.runId, error)
        return
      }
      default:
        frame satisfies never
    }
  }

  /** Its answers first, so that what goes back to the client is there when the client decides what follows the run. */
  function finish(runId: string, error?: CountersignError): void {
    const run = runs.get(runId)
    if (!run) return
    settleAnswers(
      runId,
      error ? lost(error) : refused('run-ended', 'The run ended before it took the answer.'),
    )
    runs.delete(runId)
    run.end(error)
    rest()
  }

  /** The close does not name the message. It was a request: an answer is at most half as long as a server takes. */
  function refuseLargest(code: string): void {
    const unread = [...runs.values()].filter(({ begun }) => !begun)
    const [largest] = unread.sort((a, b) => b.request.length - a.request.length)
    const message = `The server closed the socket, because it does not take the request (${code}). Send less, or start a new conversation.`
    if (largest) finish(largest.id, new CountersignError('run-error', message, { code }))
  }

  function settleAnswers(runId: string, why: CountersignError): void {
    for (const [id, answer] of answers) {
      if (answer.runId !== runId) continue
      answers.delete(id)
      answer.reject(why)
    }
  }

  /** A run that follows at once finds the socket still there. */
  function rest(): void {
    if (runs.size > 0 || state.phase === 'closed') return
    clearTimeout(idle)
    idle = setTimeout(() => close(closedHere()), options.keepAlive)
  }

  function close(why: CountersignError): void {
    if (state.phase === 'closed') return
    const { socket } = state
    state = { phase: 'closed' }
    clearTimeout(idle)
    for (const runId of [...runs.keys()]) finish(runId, why)
    socket?.close()
  }

  open().catch((cause: unknown) => {
    close(isCountersignError(cause) ? cause : unopened(cause))
  })

  return {
    usable: () => state.phase === 'opening' || (state.phase === 'open' && state.socket.readyState === OPEN),
    start(run) {
      if (runs.has(run.id)) throw sameId(run.id)
      clearTimeout(idle)
      runs.set(run.id, run)
      if (state.phase === 'open') state.socket.send(run.request)
    },
    leave(run) {
      run.drop()
      if (runs.get(run.id) !== run) return
      send({ type: 'stop', runId: run.id })
      finish(run.id, closedHere())
    },
    answer({ threadId, runId, resume }, options) {
      if (!runs.has(runId)) return Promise.reject(notOpen())
      const id = `${++answered}`
      const frame: ClientFrame = { type: 'answer', id, threadId, runId, resume, ...withHeaders(options) }
      if (state.phase === 'open') send(frame)
      else early.push(frame)
      return new Promise((resolve, reject) => {
        answers.set(id, { runId, resolve, reject })
      })
    },
    close,
  }
}

/** Headers as a member of a frame, where there are any. */
export function withHeaders({
  headers,
}: Pick<ConnectOptions, 'headers'>): Partial<Pick<ConnectOptions, 'headers'>> {
  return Object.keys(headers).length > 0 ? { headers } : {}
}

/** The server does not have the answer, for certain. */
function refused(code: string, message: string): CountersignError {
  return new CountersignError(isRefusal(code) ? code : 'run-error', message, { code })
}

export function notOpen(): CountersignError {
  return refused('run-ended', 'The run that the answer is for is not open.')
}

/** Nobody knows whether the server has the answer. */
function lost(cause: CountersignError): CountersignError {
  return new CountersignError(
    'connection-failed',
    'The run broke off before the server confirmed the answer. Try again.',
    {},
    cause,
  )
}

export function closedHere(): CountersignError {
  return new CountersignError('connection-failed', 'The socket was closed on this side.')
}

function unopened(cause: unknown): CountersignError {
  const message = `The socket could not be opened: ${cause instanceof Error ? cause.message : String(cause)}`
  return new CountersignError('connection-failed', message, {}, cause)
}

/** The address without its query, which may hold a ticket. */
function broken(url: string, phase: LinkState['phase'], code: number, reason: string): CountersignError {
  const [address] = url.split(/[?#]/)
  const what = phase === 'opening' ? 'could not be opened' : 'was closed by the server or the network'
  const message = `[WebSocket] "${address}" ${what} (${code}${reason && `: ${reason}`}). Try again.`
  return new CountersignError('connection-failed', message, { closeCode: code, reason })
}

function sameId(runId: string): CountersignError {
  const message = `A run "${runId}" is open on this socket already. Give clients that share a connection ids that differ (generateId).`
  return new CountersignError('invalid-argument', message, { runId })
}
