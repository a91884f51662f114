import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'
import { isRecord, type ServerFrame } from '@countersign/core'
import { checkOptions } from './encoding/check-options.js'
import { onAbort } from './encoding/signals.js'
import { answerRoute } from './http/answer.js'
import { chatRoute } from './http/chat.js'
import { grantsRoute } from './http/grants.js'
import { type Arrival, type BodySource, bodyTooLarge, decode, readText } from './http/http.js'
import type { ServerSocket } from './http/outgoing.js'
import { previewRoute } from './http/preview.js'
import { answer, type Incoming, type Route } from './http/route.js'
import { type ChatOptions, handlerRules, type OriginRule, type RouteOptions } from './http/route-rules.js'
import { parseBody, queryOf } from './http/run-input.js'
import { openSocket, type SocketOptions } from './http/socket.js'
import { piecesOf, SSE_HEADERS, type SseFrames } from './http/sse.js'
import { threadRoute } from './http/thread.js'
import { DEFAULT_LIMITS, type FullLimits } from './limits.js'
import type { Agent } from './run/agent.js'
import { readerTooSlow } from './scope/channel.js'
import type { RunContext } from './scope/run-context.js'

export type { ServerSocket } from './http/outgoing.js'
export { type FileLedger, type FileLedgerOptions, fileLedger } from './ledger/file-ledger.js'
export type { SqliteModule } from './ledger/file-ledger-sqlite.js'

/** A request of node:http, or of Express and similar frameworks, which may have parsed the body already. */
export type NodeRequest = IncomingMessage & { readonly body?: unknown }

/** What the application knows about a request: `subject` from its own authentication, and services for its tools. */
type ReadContext<Req> = ((request: Req) => RunContext | Promise<RunContext>) | undefined

export interface NodeChatOptions<Req extends NodeRequest = NodeRequest> extends Omit<ChatOptions, 'context'> {
  /** What the application knows about a request: `subject` from its own authentication, and services for its tools. */
  readonly context?: ReadContext<Req>
}

export interface NodeAnswerOptions<Req extends NodeRequest = NodeRequest> extends OriginRule {
  /** The same `subject` as for the run. */
  readonly context?: ReadContext<Req>
}

export interface NodeSocketOptions extends Omit<SocketOptions, 'context'> {
  /** As for a chat request, for the request that opened the socket; `headers` are those that the client sent in its frame. */
  readonly context?:
    | ((
        request: IncomingMessage,
        headers: Readonly<Record<string, string>>,
      ) => RunContext | Promise<RunContext>)
    | undefined
}

type NodeHandler<Req> = (request: Req, response: ServerResponse) => Promise<void>

/**
 * A handler for node:http and Express that responds to a chat request with its run as an event stream, like `handleChat`. A body
 * that is already parsed (`express.json()`) is taken as it is. GET, PATCH and DELETE are handled like `threadResponse`.
 *
 * @throws CountersignError `invalid-option`
 */
export function toNodeHandler<Req extends NodeRequest = NodeRequest>(
  agent: Agent,
  options: NodeChatOptions<Req> = {},
): NodeHandler<Req> {
  const routeOf = (request: Req) => (isThread(agent, request) ? threadRoute : chatRoute)
  return handler('toNodeHandler', routeOf, agent, options)
}

/** An agent without threads takes POST, and GET and DELETE for the events of a run. */
function isThread({ threads }: Agent, { method, url = '' }: NodeRequest): boolean {
  const query = queryOf(url)
  if (method === 'GET') return threads !== undefined || query.has('threadId') || query.has('runId')
  if (method === 'DELETE') return threads !== undefined || query.has('runId')
  return method === 'PATCH' && threads !== undefined
}

/**
 * A handler for node:http and Express that delivers answers to open runs, like `answerResponse`.
 *
 * @throws CountersignError `invalid-option`
 */
export function toNodeAnswerHandler<Req extends NodeRequest = NodeRequest>(
  agent: Agent,
  options: NodeAnswerOptions<Req> = {},
): NodeHandler<Req> {
  return handler('toNodeAnswerHandler', () => answerRoute, agent, options)
}

/** A handler for node:http and Express that computes the preview of edited arguments, like `previewResponse`. */
export function toNodePreviewHandler<Req extends NodeRequest = NodeRequest>(
  agent: Agent,
  options: NodeAnswerOptions<Req> = {},
): NodeHandler<Req> {
  return handler('toNodePreviewHandler', () => previewRoute, agent, options)
}

/**
 * A handler for node:http and Express that lists and revokes session grants, like `grantsResponse`.
 *
 * @throws CountersignError `invalid-option`
 */
export function toNodeGrantsHandler<Req extends NodeRequest = NodeRequest>(
  agent: Agent,
  options: NodeAnswerOptions<Req> = {},
): NodeHandler<Req> {
  return handler('toNodeGrantsHandler', () => grantsRoute, agent, options)
}

function handler<Req extends NodeRequest>(
  name: string,
  routeOf: (request: Req) => Route,
  agent: Agent,
  given: RouteOptions & { readonly context?: ReadContext<Req> },
): NodeHandler<Req> {
  checkOptions<object>(name, given, handlerRules)
  const { context, ...options } = given
  return async (request, response) => {
    const gone = new AbortController()
    response.on('close', () => gone.abort())
    response.on('error', () => gone.abort())
    // It may have gone while the application identified the user.
    if (response.destroyed) gone.abort()
    if (!mayAsk(request, response)) return
    // Behind another response on the same connection, it has no socket yet that could tell it.
    const behind = response.socket === null ? request.socket : undefined
    if (behind?.destroyed) gone.abort()
    else if (behind)
      response.on(
        'close',
        onAbort(closingOf(behind), () => gone.abort()),
      )
    const { method, url = '/', headers } = request
    const incoming: Incoming = {
      ...{ method, url, gone: gone.signal, host: hostOf(request) },
      header: (wanted) => headers[wanted]?.toString(),
      context: () => context && agent.callHook(() => context(request), gone.signal),
      readBody: (arrival) => readBody(request, arrival),
    }
    const served = await answer(routeOf(request), agent, incoming, options)
    if ('next' in served) return pipe(served, response, gone.signal, agent.limits)
    const { status, body } = served
    // The unread rest of a body would be taken for the next request, so the connection is closed after the response.
    const end = status < 400 ? {} : { connection: 'close' }
    response.writeHead(status, { ...served.headers, ...end }).end(body ?? undefined)
    await wholeTaken(response, gone.signal, agent.limits).catch(disconnect(response, gone.signal))
  }
}

/** Requests that may wait for their responses on one connection of HTTP/1. Browsers send one at a time. */
const MAX_PIPELINED = 16
/** The same on one of HTTP/2, unless the application's server says more: all tabs of a browser share it, and a proxy's users. */
const MAX_STREAMS = 100
const UNLIMITED_STREAMS = 2 ** 32 - 1
const REFUSED_STREAM = 7
const waitingOn = new WeakMap<object, number>()

/**
 * Counts the request of a connection, and closes one that sends too many without reading, or refuses a stream of HTTP/2. Node reads requests
 * until what waits to be sent is large, and by then it may have read any number of them.
 */
function mayAsk(
  { socket, stream }: IncomingMessage & { readonly stream?: ServerHttp2Stream },
  response: ServerResponse,
): boolean {
  const session = stream?.session
  const connection: unknown = session ?? socket
  // None where a test injects requests.
  if (!isRecord(connection)) return true
  const waiting = (waitingOn.get(connection) ?? 0) + 1
  waitingOn.set(connection, waiting)
  response.on('close', () => waitingOn.set(connection, (waitingOn.get(connection) ?? 1) - 1))
  const { maxConcurrentStreams = UNLIMITED_STREAMS } = session?.localSettings ?? {}
  const streams = maxConcurrentStreams < UNLIMITED_STREAMS ? maxConcurrentStreams : MAX_STREAMS
  if (waiting <= (session ? streams : MAX_PIPELINED)) return true
  if (session) stream.close(REFUSED_STREAM)
  else socket.destroy()
  return false
}

const closings = new WeakMap<object, AbortSignal>()

/** Aborts when the connection closes. One listener, however many requests wait on it. */
function closingOf(socket: IncomingMessage['socket']): AbortSignal {
  const known = closings.get(socket)
  if (known !== undefined) return known
  const closing = new AbortController()
  socket.once('close', () => closing.abort())
  closings.set(socket, closing.signal)
  return closing.signal
}

/**
 * Options for a `WebSocketServer` of the package `ws`: it buffers whole messages, by default up to 100 MiB.
 * In bytes, fragments of a message, and chunks of a connection. For an agent with `limits.bodyBytes`, set `maxPayload` to that.
 */
export const socketServerLimits = {
  maxPayload: DEFAULT_LIMITS.bodyBytes,
  maxFragments: 1024,
  maxBufferedChunks: 8192,
} as const

/**
 * Serves runs over WebSockets, like `serveSocket`: for the `connection` event of a server of the package `ws`, or anything that provides
 * a socket and the request that opened it. A server of `ws` needs {@link socketServerLimits}; if it accepts larger messages, its
 * sockets are closed with 1011.
 *
 * @throws CountersignError `invalid-option`
 *
 * @example
 * const sockets = new WebSocketServer({ server, ...socketServerLimits })
 * sockets.on('connection', toSocketHandler(agent, { context: (request) => ({ subject: userOf(request) }) }))
 */
export function toSocketHandler(
  agent: Agent,
  given: NodeSocketOptions = {},
): (socket: ServerSocket, request: IncomingMessage) => void {
  checkOptions('toSocketHandler', given, handlerRules)
  const { context, ...options } = given
  return function (this: unknown, socket, request) {
    const { bodyBytes } = agent.limits
    if (takesTooMuch(this, bodyBytes)) {
      socket.addEventListener('error', () => {})
      const message = `The WebSocketServer takes messages of more than ${bodyBytes} bytes: give it ...socketServerLimits.`
      socket.send(JSON.stringify({ type: 'error', code: 'invalid-option', message } satisfies ServerFrame))
      socket.close(1011, 'invalid-option')
      return
    }
    const { origin } = request.headers
    const known: SocketOptions = {
      ...options,
      ...(context && { context: (headers) => context(request, headers) }),
    }
    openSocket(agent, socket, { origin, host: hostOf(request) }, known, request.socket)
  }
}

/** An emitter calls its listeners as its own methods, so a server of `ws` is `this`. 0 means no limit. */
function takesTooMuch(server: unknown, bodyBytes: number): boolean {
  if (!isRecord(server) || !isRecord(server.options)) return false
  const { maxPayload } = server.options
  return typeof maxPayload === 'number' && (maxPayload < 1 || maxPayload > bodyBytes)
}

/** HTTP/2 has its own header for the host. */
function hostOf({ headers }: IncomingMessage): string | undefined {
  const authority = headers[':authority']
  return headers.host ?? (typeof authority === 'string' ? authority : undefined)
}

async function readBody(request: NodeRequest, arrival: Arrival): Promise<unknown> {
  const { body } = request
  const { limits } = arrival
  if (typeof body === 'string') return parseBody(body, limits)
  if (body instanceof Uint8Array) {
    if (body.byteLength > limits.bodyBytes) throw bodyTooLarge(limits)
    return parseBody(decode(body), limits)
  }
  if (body !== undefined) return body
  // Stopping to read a body that is too large must not close the socket before the response.
  const chunks = request.iterator({ destroyOnReturn: false })
  const source: BodySource = { read: () => chunks.next(), cancel: async () => chunks.return?.() }
  return parseBody(await readText(source, arrival), limits)
}

/** Waits until the response can be written to (`drain`), or the operating system has all of it (`finish`). */
async function taken(
  event: 'drain' | 'finish',
  response: ServerResponse,
  gone: AbortSignal,
  stallTime: number,
): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const stalled = new Promise<never>((_, reject) => {
    const why = `its connection took nothing for ${stallTime} ms`
    timer = setTimeout(() => reject(readerTooSlow(why)), stallTime)
  })
  try {
    await Promise.race([once(response, event, { signal: gone }), stalled])
  } finally {
    clearTimeout(timer)
  }
}

async function wholeTaken(response: ServerResponse, gone: AbortSignal, { stallTime }: FullLimits) {
  const { socket, req } = response
  // Its turn comes after another response of its connection, which has the same limit.
  if (socket === null && isRecord(req.socket)) await once(response, 'socket', { signal: gone })
  if (!response.writableFinished) await taken('finish', response, gone, stallTime)
}

const disconnect = (response: ServerResponse, gone: AbortSignal) => (error: unknown) => {
  if (!gone.aborted) response.destroy(error instanceof Error ? error : undefined)
}

/** Disconnects a reader that reads nothing for too long: it can rejoin the run. */
async function pipe(
  frames: SseFrames,
  response: ServerResponse,
  gone: AbortSignal,
  limits: FullLimits,
): Promise<void> {
  response.writeHead(200, frames.headers ?? SSE_HEADERS)
  response.flushHeaders()
  gone.addEventListener('abort', () => frames.cancel(), { once: true })
  try {
    for (;;) {
      const frame = gone.aborted ? undefined : await frames.next()
      if (frame === undefined) break
      for (const piece of piecesOf(frame))
        if (!response.write(piece)) await taken('drain', response, gone, limits.stallTime)
    }
    response.end()
    await wholeTaken(response, gone, limits)
  } catch (error) {
    disconnect(response, gone)(error)
  }
  frames.cancel()
}
