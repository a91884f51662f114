import { type ClientFrame, CountersignError, isCountersignError } from '@countersign/core'
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
import { checkKinds } from './kinds.js'

export type { ClientFrame, ServerFrame } from '@countersign/core'
export type { WebSocketLike } from './connections/web-socket-link.js'

/** Options of {@link webSocket}. */
export interface WebSocketOptions {
  /** Subprotocols to offer to the server. Default: none. */
  protocols?: string | readonly string[] | undefined
  /** Replaces the global `WebSocket`, which Node has from version 22 on; for example that of the package `ws`. */
  WebSocket?: WebSocketConstructor | undefined
  /** Maximum length of one message, in UTF-16 units. Default 16 MiB. */
  maxEventBytes?: number | undefined
  /** Maximum length of all unread messages of a run, in UTF-16 units. Default 64 MiB. */
  maxUnreadBytes?: number | undefined
  /** Milliseconds that the socket stays open without a run. Default 0: a run that follows at once still finds it open. */
  keepAlive?: number | undefined
  /** Whether the server stores its runs, so that one whose socket broke can be rejoined, without a gap. Default: no. */
  rejoin?: boolean | undefined
}

export type WebSocketConstructor = new (url: string, protocols?: string | string[]) => WebSocketLike

export interface WebSocketConnection extends Connection {
  answer: NonNullable<Connection['answer']>
  /** Closes the socket now; runs that are open on it fail with `connection-failed`. A later run opens a new one. */
  close(): void
}

/** A function is called each time a socket is opened, for a ticket that expires. `https:` and relative URLs are accepted. */
export type WebSocketUrl = string | URL | (() => string | URL | Promise<string | URL>)

/**
 * Carries runs, and answers into the open run, over a WebSocket. One socket, opened by the first run and closed after the
 * last, carries the runs of all clients that share the connection, concurrently. It does not reconnect: when it breaks, the
 * runs on it fail and the user may `retry()`.
 *
 * Every message is one JSON text. The client sends {@link ClientFrame}, the server {@link ServerFrame}:
 *
 * ```
 * -> { type: 'run', input, headers? }                              RunAgentInput of AG-UI 1.0
 * <- { type: 'events', runId, events: [...], id? }                 any number of times
 * -> { type: 'rejoin', threadId, runId, lastEventId?, headers? }   or the rest of a run that broke off
 * -> { type: 'answer', id, threadId, runId, resume, headers? }     entries as in the `resume` of a request
 * <- { type: 'answered', id }   or   { type: 'refused', id, code, message }
 * <- { type: 'end', runId }                                        no events or confirmations follow
 * -> { type: 'stop', runId }                                       the client no longer listens; no reply
 * <- { type: 'error', runId?, status?, code, message }             the run, or all of them, cannot continue
 * ```
 *
 * The server confirms an answer before it ends the run: an answer without a confirmation by then was not accepted, and goes
 * out with the next request. An answer given while the socket opens is sent after the frame that opened it. Unknown types are
 * ignored, and so are frames of runs that the client has left. A browser sends cookies and `Origin` when the socket is opened
 * and cannot set headers, so the client's `headers` are sent in its frames. The server checks both, as for any request.
 *
 * Runs fail with `connection-failed` (the socket did not open, or broke), `run-error` (an `error` frame; its code in
 * `data.code`, and in `data.status` what HTTP has for it), `malformed-event`, `event-too-large` (one message, or all unread ones) or `invalid-option`. A message that
 * breaks the rules closes the socket.
 *
 * @example
 * const connection = webSocket('wss://example.org/chat')
 */
export function webSocket(url: WebSocketUrl, options: WebSocketOptions = {}): WebSocketConnection {
  const { maxEventBytes = 16 * 1024 * 1024, maxUnreadBytes = 64 * 1024 * 1024, keepAlive = 0 } = options
  if (typeof process !== 'undefined' && process.env.NODE_ENV !== 'production')
    checkKinds('webSocket', options, {
      protocols: 'string | array',
      WebSocket: 'function',
      maxEventBytes: 'number above 0',
      maxUnreadBytes: 'number above 0',
      keepAlive: 'number of milliseconds',
      rejoin: 'boolean',
    })
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
    // Aborted with an error: the socket is dead without having said so.
    const leave = () => (isCountersignError(signal.reason) ? own.close(signal.reason) : own.leave(run))
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

/** Normalizes a URL to what every `WebSocket` accepts: absolute, `ws:` or `wss:`. */
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
