import { type ClientFrame, CountersignError } from '@countersign/core'
import type { Connection, ConnectOptions } from './connections/connection.js'
import {
  closedHere,
  createLink,
  notOpen,
  type SocketLink,
  type WebSocketLike,
  withHeaders,
} from './connections/web-socket-link.js'
import { createSocketRun } from './connections/web-socket-run.js'

export type { ClientFrame, ServerFrame } from '@countersign/core'
export type { WebSocketLike } from './connections/web-socket-link.js'

/** Options of {@link webSocket}. */
export interface WebSocketOptions {
  /** Subprotocols to offer to the server. Default: none. */
  protocols?: string | readonly string[] | undefined
  /** Instead of the global `WebSocket`, which Node has from version 22 on: that of the package `ws`, for one. */
  WebSocket?: WebSocketConstructor | undefined
  /** How many UTF-16 units one message may have. Default 16 MiB. */
  maxEventBytes?: number | undefined
  /** How many UTF-16 units of messages may wait to be read, for each run. Default 64 MiB. */
  maxUnreadBytes?: number | undefined
  /** How many milliseconds the socket stays open without a run. Default 0: a run that follows at once finds it open. */
  keepAlive?: number | undefined
  /** Whether the server keeps its runs, so that one whose socket broke can be taken up. Default: no. */
  rejoin?: boolean | undefined
}

export type WebSocketConstructor = new (url: string, protocols?: string | string[]) => WebSocketLike

export interface WebSocketConnection extends Connection {
  answer: NonNullable<Connection['answer']>
  /** Closes the socket now; runs that are open on it fail with `connection-failed`. A later run opens another. */
  close(): void
}

/** Asked each time a socket is opened where it is a function: for a ticket that expires. `https:` and relative addresses will do. */
export type WebSocketUrl = string | URL | (() => string | URL | Promise<string | URL>)

/**
 * Runs over a WebSocket, and answers into the run that is open. One socket, opened by the first run and closed after the last, carries
 * the runs of all clients that share the connection, side by side. It is never opened again by itself: when it breaks, the runs on it
 * fail and the person may `retry()`.
 *
 * Every message is one JSON text. The client sends {@link ClientFrame}, the server {@link ServerFrame}:
 *
 * ```
 * -> { type: 'run', input, headers? }                              RunAgentInput of AG-UI 1.0
 * <- { type: 'events', runId, events: [...], id? }                 any number of times
 * -> { type: 'rejoin', threadId, runId, lastEventId?, headers? }   or the rest of a run that broke off
 * -> { type: 'answer', id, threadId, runId, resume, headers? }     entries as in the `resume` of a request
 * <- { type: 'answered', id }   or   { type: 'refused', id, code, message }
 * <- { type: 'end', runId }                                        after this the run has neither events nor confirmations
 * -> { type: 'stop', runId }                                       nobody listens any more; needs no reply
 * <- { type: 'error', runId?, code, message }                      the run, or all of them, cannot go on
 * ```
 *
 * What the server takes it confirms before it ends the run: an answer without a confirmation by then was not taken, and goes out with
 * the next request. One that is given while the socket opens goes out behind what opened it. Types the client does not know are passed over, and so are frames of runs it has left. A browser sends cookies and
 * `Origin` when the socket is opened and can set no header; the client's `headers` go with what it asks instead. The server checks
 * both, as it does for any request.
 *
 * Runs fail with `connection-failed` (the socket did not open, or broke), `run-error` (an `error` frame; its code in `data.code`),
 * `malformed-event`, `event-too-large` (one message, or all that wait to be read) or `invalid-option`. A message that breaks the rules
 * ends the socket.
 *
 * @example
 * const connection = webSocket('wss://example.org/chat')
 */
export function webSocket(url: WebSocketUrl, options: WebSocketOptions = {}): WebSocketConnection {
  const { maxEventBytes = 16 * 1024 * 1024, maxUnreadBytes = 64 * 1024 * 1024, keepAlive = 0 } = options
  let link: SocketLink | undefined

  function usableLink(): SocketLink {
    if (link?.usable()) return link
    link = createLink({
      target: async () => address(typeof url === 'function' ? await url() : url),
      open: (target) => open(target, options),
      maxFrame: maxEventBytes,
      keepAlive,
    })
    return link
  }

  async function* read(runId: string, frame: ClientFrame, { signal, onEventId }: ConnectOptions) {
    if (signal.aborted) return
    const run = createSocketRun(runId, JSON.stringify(frame), maxUnreadBytes)
    const own = usableLink()
    own.start(run)
    const leave = () => own.leave(run)
    signal.addEventListener('abort', leave)
    try {
      yield* run.read(onEventId)
    } finally {
      signal.removeEventListener('abort', leave)
      leave()
    }
  }

  const connection: WebSocketConnection = {
    connect(input, connect) {
      return read(input.runId, { type: 'run', input, ...withHeaders(connect) }, connect)
    },
    answer(answers, connect) {
      return link ? link.answer(answers, connect) : Promise.reject(notOpen())
    },
    close() {
      link?.close(closedHere())
    },
  }
  if (!options.rejoin) return connection
  return {
    ...connection,
    rejoin(cursor, connect) {
      return read(cursor.runId, { type: 'rejoin', ...cursor, ...withHeaders(connect) }, connect)
    },
  }
}

/** A URL as `WebSocket` takes it everywhere: absolute, `ws:` or `wss:`. */
function address(url: string | URL): string {
  try {
    const absolute = new URL(url, globalThis.location?.href)
    absolute.protocol = absolute.protocol.replace(/^http/, 'ws')
    return absolute.href
  } catch (cause) {
    const message = 'webSocket: `url` has to be an address, and an absolute one outside of a page.'
    throw new CountersignError('invalid-option', message, { option: 'url' }, cause)
  }
}

function open(url: string, options: WebSocketOptions): WebSocketLike {
  const Constructor: WebSocketConstructor | undefined = options.WebSocket ?? globalThis.WebSocket
  if (!Constructor) {
    const message =
      'webSocket: there is no global WebSocket here. Pass the option `WebSocket`, from the package ws.'
    throw new CountersignError('invalid-option', message, { option: 'WebSocket' })
  }
  const { protocols } = options
  return new Constructor(url, typeof protocols === 'string' ? protocols : [...(protocols ?? [])])
}
