import { type CountersignError, isCountersignError, type RunAgentInput } from '@countersign/core'
import { checkOptions, group } from '../encoding/check-options.js'
import { DEFAULT_LIMITS, exceeds, type FullLimits, type Limits, limitRules, readLimits } from '../limits.js'
import { type QuotaOwner, takeArriving } from './quota.js'
import { invalid, parseRunInput, tooMany } from './run-input.js'

/**
 * Reads the AG-UI input of a chat request: POST, `application/json` only (so that forms on other sites can't send it), within limits.
 *
 * Authenticate before you call it: the sender of the body is not known here. `limits`: as for `createAgent`.
 *
 * @throws CountersignError `invalid-option`; `invalid-request`, `request-too-large`, `too-many-requests`, of which `data.status` is the HTTP status: 400, 405, 408,
 * 413, 415 or 429.
 */
export async function readRunInput(request: Request, limits?: Limits): Promise<RunAgentInput> {
  checkOptions('readRunInput', { limits }, { limits: group(limitRules) })
  const arrival = { owner: undefined, limits: readLimits(limits) }
  const { headers, method } = request
  checkRequest(method, headers.get('content-type'), headers.get('content-length'), arrival.limits)
  return parseRunInput(await readText(request.body?.getReader(), arrival), arrival.limits)
}

/** Checks the method, type and announced size of a request. */
export function checkRequest(
  method: string | undefined,
  type: string | null | undefined,
  length: string | null | undefined,
  limits: FullLimits = DEFAULT_LIMITS,
) {
  if (method !== 'POST') throw invalid('Send a POST request.', 405)
  if (type?.split(';')[0]?.trim().toLowerCase() !== 'application/json')
    throw invalid('Send application/json.', 415)
  if (Number(length ?? 0) > limits.bodyBytes) throw bodyTooLarge(limits)
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
      const arrived = body.read().catch(() => Promise.reject(brokenOff()))
      const { done, value } = await Promise.race([arrived, late])
      if (done || value === undefined) break
      size += value.byteLength
      if (size > limits.bodyBytes) throw bodyTooLarge(limits)
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

/** A request whose client went before all of it had arrived, or before its reply. Nobody reads this. */
function brokenOff(): CountersignError {
  return invalid('The request broke off: its client has gone.')
}

export function tooManyBodies() {
  return tooMany('too-many-requests', 'Too many requests are being read. Send it again later.')
}

export function bodyTooLarge(limits: FullLimits) {
  return exceeds('bodyBytes', limits, ['A request', 'bytes'])
}

/** Where an error goes that the client must not see: an agent, with its option `warn`. */
interface Reporter {
  warn(message: string, error?: unknown): void
}

/** The response to a request that was rejected before any stream, unless its client has `gone`. Never contains internals. */
export function rejection(agent: Reporter, error: unknown, gone: AbortSignal, allow = 'POST'): Rejection {
  const isLeft = gone.aborted && error === gone.reason
  const { status, retryAfter, ...reason } = describeRejection(agent, isLeft ? brokenOff() : error)
  const reply = rejectionOf(status, reason, allow)
  if (retryAfter === undefined) return reply
  return { ...reply, headers: { ...reply.headers, 'retry-after': String(retryAfter) } }
}

export interface Rejection {
  readonly status: number
  readonly body: string
  readonly headers: Record<string, string>
}

export function rejectionOf(
  status: number,
  error: Omit<RejectedBecause, 'status'>,
  allow = 'POST',
): Rejection {
  return { ...json({ error }, status === 405 ? { allow } : {}), status }
}

/** A reply with JSON. */
export function json(body: unknown, headers: Readonly<Record<string, string>> = {}): Rejection {
  const usual = { 'content-type': 'application/json', 'cache-control': 'no-store' }
  return { status: 200, body: JSON.stringify(body), headers: { ...usual, ...headers } }
}

/** What a client may know of an error that prevented its request from being served. */
interface RejectedBecause {
  readonly status: number
  readonly code: string
  readonly message: string
  /** The open run, if that is why. */
  readonly runId?: string
  /** The option whose value the request exceeds, if that is why. */
  readonly limit?: string
  readonly max?: number
  /** Seconds. */
  readonly retryAfter?: number
  /** The client may send its copy of the conversation. */
  readonly upload?: true
}

/** Seconds after which a client may ask for a store again. */
const RETRY_AFTER = 5

export function describeRejection(agent: Reporter, error: unknown): RejectedBecause {
  if (isCountersignError(error) && error.code === 'ledger-unavailable' && error.data.status === undefined) {
    agent.warn('A store could not be reached, and a client got the status 503.', error)
    const message = 'The server cannot reach its store at the moment. Send the request again.'
    return { status: 503, code: error.code, message, retryAfter: RETRY_AFTER }
  }
  if (!isCountersignError(error) || typeof error.data.status !== 'number') {
    agent.warn('A request failed, and its client got the status 500.', error)
    return { status: 500, code: 'internal', message: 'Something went wrong on the server.' }
  }
  const { code, message, data } = error
  const { runId, limit, max, upload, retryAfter } = data
  return {
    ...{ status: Number(data.status), code, message },
    ...(typeof runId === 'string' && { runId }),
    ...(typeof limit === 'string' && { limit }),
    ...(typeof max === 'number' && { max }),
    ...(upload === true && { upload }),
    ...(typeof retryAfter === 'number' && { retryAfter }),
  }
}
