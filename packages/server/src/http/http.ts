import { isCountersignError, type RunAgentInput } from '@countersign/core'
import { DEFAULT_LIMITS, type FullLimits, MAX_BODY_BYTES } from '../limits.js'
import type { Agent } from '../run/agent.js'
import type { LoggedEvent } from '../run-log/run-log.js'
import type { RunContext } from '../scope/run-context.js'
import { ownerOf, subjectOf } from './holder.js'
import { type QuotaOwner, takeArriving, takeRun } from './quota.js'
import { invalid, parseRunInput, tooLarge, tooMany } from './run-input.js'
import { serveRun } from './serve-run.js'
import { SSE_HEADERS, type SseFrames, sseBody, sseFrames } from './sse.js'

export interface ChatOptions {
  /** What the application knows about this request: `subject` from its own authentication, and services for its tools. */
  readonly context?: RunContext | undefined
  /** Milliseconds of silence after which a comment is sent. Default 15,000. */
  readonly keepAlive?: number | undefined
  /**
   * Changes the validated input before it runs: replaces the history by that of the application's own store, or reads answers in the
   * application's own format. If it throws, the request is rejected.
   */
  readonly prepare?: ((input: RunAgentInput) => RunAgentInput | Promise<RunAgentInput>) | undefined
  /**
   * A live channel: the run stays open while the user decides, and takes the answers that `answerResponse` delivers. Only for clients that
   * send answers there (`postAnswers`): any other would wait for the end of the run, and the run for the answer. Needs `context.subject`.
   * Default `false`.
   */
  readonly live?: boolean | undefined
  /**
   * Milliseconds that a run continues after its last reader in this process has gone, so that it can be rejoined (`rejoinResponse`).
   * Over HTTP, a user who presses stop looks the same. Needs `context.subject`. Default 0: the model is stopped at once.
   */
  readonly goOnFor?: number | undefined
}

export const KEEP_ALIVE_MS = 15_000

/**
 * Reads the AG-UI input of a chat request: POST, `application/json` only (so that forms on other sites can't send it), within limits.
 *
 * Authenticate before you call it: the sender of the body is not known here.
 *
 * @throws CountersignError `invalid-request`, `request-too-large`, `too-many-requests`; `data.status` is the HTTP status: 400, 405, 408,
 * 413, 415 or 429.
 */
export async function readRunInput(request: Request): Promise<RunAgentInput> {
  return readRequest(request, unknownCaller)
}

async function readRequest(request: Request, arrival: Arrival): Promise<RunAgentInput> {
  checkRequest(request.method, request.headers.get('content-type'), request.headers.get('content-length'))
  return parseRunInput(await readText(request.body?.getReader(), arrival))
}

/** Checks the method, type and announced size of a request. */
export function checkRequest(
  method: string | undefined,
  type: string | null | undefined,
  length: string | null | undefined,
) {
  if (method !== 'POST') throw invalid('Send a POST request.', 405)
  if (type?.split(';')[0]?.trim().toLowerCase() !== 'application/json')
    throw invalid('Send application/json.', 415)
  if (Number(length ?? 0) > MAX_BODY_BYTES) throw bodyTooLarge()
}

/** The sender of a body, and the limits for reading it. */
export interface Arrival {
  readonly owner: QuotaOwner
  readonly limits: FullLimits
}

/** A body whose sender is not known. */
export const unknownCaller: Arrival = { owner: undefined, limits: DEFAULT_LIMITS }

/** The source of a body, such as the reader of a `ReadableStream`. */
export interface BodySource {
  read(): Promise<{ readonly done?: boolean | undefined; readonly value?: Uint8Array | undefined }>
  /** Ends the transfer. */
  cancel(): Promise<unknown>
}

/** The minimum cost of a chunk, however small it is. */
const CHUNK_BYTES = 256

/** Reads a body as text. Fails as soon as it is too large or takes too long, or its sender has too much in transfer. */
export async function readText(body: BodySource | undefined, { owner, limits }: Arrival): Promise<string> {
  if (body === undefined) return ''
  const held = takeArriving(owner, 0, limits)
  let timer: ReturnType<typeof setTimeout> | undefined
  try {
    if (held === undefined) throw tooManyBodies()
    const late = new Promise<never>((_, reject) => {
      const message = `The body did not arrive within ${limits.arrivalTime} ms.`
      timer = setTimeout(() => reject(invalid(message, 408)), limits.arrivalTime)
    })
    const chunks: Uint8Array[] = []
    let size = 0
    for (;;) {
      const { done, value } = await Promise.race([body.read(), late])
      if (done || value === undefined) break
      size += value.byteLength
      if (size > MAX_BODY_BYTES) throw bodyTooLarge()
      if (!held.grow(Math.max(value.byteLength, CHUNK_BYTES))) throw tooManyBodies()
      chunks.push(value)
    }
    return decode(joined(chunks, size))
  } catch (error) {
    // Not awaited: a pending read may last as long as its sender likes.
    body.cancel().catch(() => {})
    throw error
  } finally {
    clearTimeout(timer)
    held?.release()
  }
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const bytes = new Uint8Array(size)
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.byteLength
  }
  return bytes
}

/** @throws CountersignError `invalid-request` */
export function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw invalid('The body is not UTF-8.')
  }
}

export function tooManyBodies() {
  return tooMany('too-many-requests', 'Too many requests are being read. Send it again later.')
}

export function bodyTooLarge() {
  return tooLarge(`The body has more than ${MAX_BODY_BYTES} bytes.`)
}

/** The response to a request that was rejected before any stream. Never contains internals. */
export function rejection(error: unknown, allow = 'POST'): Rejection {
  const { status, ...told } = describeRejection(error)
  return rejectionOf(status, told, allow)
}

/** A rejected request's response. */
export interface Rejection {
  readonly status: number
  readonly body: string
  readonly headers: Record<string, string>
}

export function rejectionOf(
  status: number,
  error: { readonly code: string; readonly message: string },
  allow = 'POST',
): Rejection {
  const headers = {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    ...(status === 405 && { allow }),
  }
  return { status, body: JSON.stringify({ error }), headers }
}

/** What a client may know of an error that prevented its request from being served. */
export function describeRejection(error: unknown): {
  readonly status: number
  readonly code: string
  readonly message: string
} {
  if (!isCountersignError(error) || typeof error.data.status !== 'number')
    return { status: 500, code: 'internal', message: 'Something went wrong on the server.' }
  const { code, message, data } = error
  return { status: Number(data.status), code, message }
}

/**
 * Responds to a chat request with its run as an event stream, for servers with the Fetch API. A client that disconnects stops the
 * model; a claimed call may finish (`approvals.wait`). A rejected request gets 400, 405, 408, 413, 415 or 429 and
 * `{ error: { code, message } }`. Authenticate before you call it: the body is read only here.
 */
export async function handleChat(
  agent: Agent,
  request: Request,
  options: ChatOptions = {},
): Promise<Response> {
  let frames: SseFrames
  try {
    const arrival = { owner: subjectOf(options.context)?.id, limits: agent.limits }
    const input = await readRequest(request, arrival)
    frames = await chatFrames(agent, input, options, request.signal)
  } catch (error) {
    const { body, ...init } = rejection(error)
    return new Response(body, init)
  }
  return new Response(sseBody(frames), { headers: SSE_HEADERS })
}

/**
 * The run of a request as frames; `gone` aborts when its reader has gone.
 *
 * @throws CountersignError `invalid-option` if `context.subject` is invalid, `too-many-runs`.
 */
export async function chatFrames(
  agent: Agent,
  given: RunAgentInput,
  { context, prepare, live = false, goOnFor = 0, keepAlive = KEEP_ALIVE_MS }: ChatOptions,
  gone: AbortSignal,
): Promise<SseFrames> {
  const holder = subjectOf(context)
  let held = takeRun(ownerOf(holder), agent.limits, given)
  let input = given
  let events: AsyncIterableIterator<LoggedEvent>
  try {
    input = (await prepare?.(given)) ?? given
    if (input !== given) {
      held.release()
      held = takeRun(ownerOf(holder), agent.limits, input)
    }
    events = serveRun(agent, input, { context, holder, live, goOnFor, held }).events
  } catch (error) {
    held.release()
    throw error
  }
  const frames = sseFrames(events, input.runId, keepAlive)
  if (gone.aborted) frames.cancel()
  else gone.addEventListener('abort', frames.cancel, { once: true })
  return frames
}
