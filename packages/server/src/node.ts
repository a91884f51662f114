import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { isRecord, type ServerFrame } from '@countersign/core'
import { checkOptions } from './encoding/check-options.js'
import { type AnswerOptions, answerRequest, type ServePost } from './http/answer.js'
import { type ChatOptions, chatFrames } from './http/chat.js'
import { grantsRequest } from './http/grants.js'
import { subjectOf } from './http/holder.js'
import {
  type Arrival,
  type BodySource,
  bodyTooLarge,
  checkRequest,
  decode,
  type Rejection,
  readText,
  rejection,
} from './http/http.js'
import type { OriginRule } from './http/origin.js'
import { previewRequest } from './http/preview.js'
import { readRejoin, restFrames } from './http/rejoin.js'
import { handlerRules } from './http/route-rules.js'
import { parseBody, queryOf, readParsedInput } from './http/run-input.js'
import { openSocket, type ServerSocket, type SocketOptions } from './http/socket.js'
import { SSE_HEADERS, type SseFrames } from './http/sse.js'
import { type ThreadRequest, threadRequest } from './http/thread.js'
import { DEFAULT_LIMITS, type FullLimits } from './limits.js'
import type { Agent } from './run/agent.js'
import { readerTooSlow } from './scope/channel.js'
import type { RunContext } from './scope/run-context.js'

export type { ServerSocket } from './http/socket.js'
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

/**
 * A handler for node:http and Express that responds to a chat request with its run as an event stream, like `handleChat`. A body
 * that is already parsed (`express.json()`) is taken as it is. GET, PATCH and DELETE are handled like `threadResponse`.
 *
 * @throws CountersignError `invalid-option`
 */
export function toNodeHandler<Req extends NodeRequest = NodeRequest>(
  agent: Agent,
  options: NodeChatOptions<Req> = {},
): (request: Req, response: ServerResponse) => Promise<void> {
  checkOptions('toNodeHandler', options, handlerRules)
  return async (request, response) => {
    const gone = new AbortController()
    response.on('close', () => gone.abort())
    response.on('error', () => gone.abort())
    // It may have gone while the application identified the user.
    if (response.destroyed) gone.abort()
    let frames: SseFrames | undefined
    try {
      if (isThread(agent, request)) return await sendThread(agent, request, response, options)
      frames =
        request.method === 'GET' && isRejoin(request)
          ? await rejoin(agent, request, options, gone)
          : await chat(agent, request, options, gone)
    } catch (error) {
      return reject(response, rejection(agent, error))
    }
    if (frames === undefined) response.writeHead(204, { 'cache-control': 'no-store' }).end()
    else await pipe(frames, response, gone.signal, agent.limits)
  }
}

async function chat<Req extends NodeRequest>(
  agent: Agent,
  request: Req,
  { context, ...options }: NodeChatOptions<Req>,
  gone: AbortController,
): Promise<SseFrames> {
  const { method, headers } = request
  checkRequest(method, headers['content-type'], headers['content-length'], agent.limits)
  // Identify the user first: an unknown caller must not fill memory with a body.
  const known = await context?.(request)
  const arrival = { owner: subjectOf(known)?.id, limits: agent.limits }
  const input = readParsedInput(await readBody(request, arrival), agent.limits)
  return chatFrames(agent, input, { ...options, context: known }, gone.signal)
}

async function rejoin<Req extends NodeRequest>(
  agent: Agent,
  request: Req,
  options: NodeChatOptions<Req>,
  gone: AbortController,
): Promise<SseFrames | undefined> {
  const query = queryOf(request.url ?? '')
  const asked = readRejoin(agent, query.get('threadId'), query.get('runId'), request.headers['last-event-id'])
  return restFrames(agent, await options.context?.(request), asked, gone.signal, options.keepAlive)
}

async function sendThread<Req extends NodeRequest>(
  agent: Agent,
  request: Req,
  response: ServerResponse,
  { context }: NodeChatOptions<Req>,
): Promise<void> {
  const { method, headers: given, url = '' } = request
  const asked: ThreadRequest = {
    ...{ method, query: queryOf(url), known: given['if-none-match'] ?? null },
    readBody: (arrival) => readBody(request, arrival),
  }
  const { status, headers, body } = await threadRequest(agent, asked, await context?.(request))
  response.writeHead(status, headers).end(body ?? undefined)
}

/** An agent without threads takes POST, and GET and DELETE for the events of a run. */
function isThread({ threads }: Agent, { method, url = '' }: NodeRequest): boolean {
  const query = queryOf(url)
  const isOfRun = query.has('runId')
  if (method === 'GET') return !isOfRun && (threads !== undefined || query.has('threadId'))
  if (method === 'DELETE') return isOfRun || threads !== undefined
  return method === 'PATCH' && threads !== undefined
}

function isRejoin({ url = '' }: NodeRequest): boolean {
  return queryOf(url).has('runId')
}

/**
 * A handler for node:http and Express that delivers answers to open runs, like `answerResponse`.
 *
 * @throws CountersignError `invalid-option`
 */
export function toNodeAnswerHandler<Req extends NodeRequest = NodeRequest>(
  agent: Agent,
  options: NodeAnswerOptions<Req> = {},
): (request: Req, response: ServerResponse) => Promise<void> {
  checkOptions('toNodeAnswerHandler', options, handlerRules)
  return toPostHandler(answerRequest, agent, options)
}

/** A handler for node:http and Express that computes the preview of edited arguments, like `previewResponse`. */
export function toNodePreviewHandler<Req extends NodeRequest = NodeRequest>(
  agent: Agent,
  options: NodeAnswerOptions<Req> = {},
): (request: Req, response: ServerResponse) => Promise<void> {
  checkOptions('toNodePreviewHandler', options, handlerRules)
  return toPostHandler(previewRequest, agent, options)
}

function toPostHandler<Req extends NodeRequest>(
  serve: ServePost,
  agent: Agent,
  options: NodeAnswerOptions<Req>,
): (request: Req, response: ServerResponse) => Promise<void> {
  return async (request, response) => {
    const { method, headers } = request
    const head = {
      method,
      type: headers['content-type'],
      length: headers['content-length'],
      origin: headers.origin,
      host: hostOf(request),
    }
    let answered: Rejection
    try {
      const known: AnswerOptions = { origins: options.origins, context: await options.context?.(request) }
      answered = await serve(agent, head, (arrival) => readBody(request, arrival), known)
    } catch (error) {
      answered = rejection(agent, error)
    }
    if (answered.status === 200) response.writeHead(200, answered.headers).end(answered.body)
    else reject(response, answered)
  }
}

/**
 * A handler for node:http and Express that lists and revokes session grants, like `grantsResponse`.
 *
 * @throws CountersignError `invalid-option`
 */
export function toNodeGrantsHandler<Req extends NodeRequest = NodeRequest>(
  agent: Agent,
  options: NodeAnswerOptions<Req> = {},
): (request: Req, response: ServerResponse) => Promise<void> {
  checkOptions('toNodeGrantsHandler', options, handlerRules)
  return async (request, response) => {
    const { method, headers, url = '/' } = request
    const head = { method, url, origin: headers.origin, host: hostOf(request) }
    let answered: Rejection
    try {
      answered = await grantsRequest(agent, head, {
        origins: options.origins,
        context: await options.context?.(request),
      })
    } catch (error) {
      answered = rejection(agent, error)
    }
    if (answered.status === 200) response.writeHead(200, answered.headers).end(answered.body)
    else reject(response, answered)
  }
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
  const source: BodySource = {
    read: () => chunks.next(),
    cancel: async () => chunks.return?.(),
  }
  return parseBody(await readText(source, arrival), limits)
}

/** The unread rest of a body would be taken for the next request, so the connection is closed after the response. */
function reject(response: ServerResponse, { status, headers, body }: Rejection): void {
  response.writeHead(status, { ...headers, connection: 'close' }).end(body)
}

/** Waits until the response can be written to. */
async function drained(response: ServerResponse, gone: AbortSignal, stallTime: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const stalled = new Promise<never>((_, reject) => {
    const why = `its connection took nothing for ${stallTime} ms`
    timer = setTimeout(() => reject(readerTooSlow(why)), stallTime)
  })
  try {
    await Promise.race([once(response, 'drain', { signal: gone }), stalled])
  } finally {
    clearTimeout(timer)
  }
}

/** Disconnects a reader that reads nothing for too long: it can rejoin the run. */
async function pipe(
  frames: SseFrames,
  response: ServerResponse,
  gone: AbortSignal,
  { stallTime }: FullLimits,
): Promise<void> {
  response.writeHead(200, SSE_HEADERS)
  response.flushHeaders()
  gone.addEventListener('abort', () => frames.cancel(), { once: true })
  try {
    for (;;) {
      const frame = gone.aborted ? undefined : await frames.next()
      if (frame === undefined) break
      if (!response.write(frame)) await drained(response, gone, stallTime)
    }
  } catch (error) {
    if (!gone.aborted) response.destroy(error instanceof Error ? error : undefined)
  }
  frames.cancel()
  if (!gone.aborted) response.end()
}
