import { isCountersignError, type RunAgentInput } from '@countersign/core'
import type { Agent } from '../run/agent.js'
import type { RunContext } from '../scope/settings.js'
import { invalid, MAX_BODY_BYTES, parseRunInput, tooLarge } from './run-input.js'
import { SSE_HEADERS, type SseFrames, sseFrames } from './sse.js'

export interface ChatOptions {
  /** What the application knows of this request: `subject` from its own authentication, and services for its tools. */
  readonly context?: RunContext | undefined
  /** Milliseconds of silence after which a comment is sent. Default 15,000. */
  readonly keepAlive?: number | undefined
}

export const KEEP_ALIVE_MS = 15_000

/**
 * Reads the AG-UI input of a chat request: POST, `application/json` only (so that no other site's form can send it), within limits.
 *
 * @throws CountersignError `invalid-request`, `request-too-large`; `data.status` is the HTTP status: 400, 405, 413 or 415.
 */
export async function readRunInput(request: Request): Promise<RunAgentInput> {
  checkRequest(request.method, request.headers.get('content-type'), request.headers.get('content-length'))
  return parseRunInput(await readText(request.body ?? []))
}

/** Method, type and announced size of a request. */
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

/** The text of a body, given up as soon as it is too large. */
export async function readText(body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.byteLength
    if (size > MAX_BODY_BYTES) throw bodyTooLarge()
    chunks.push(chunk)
  }
  const bytes = new Uint8Array(size)
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.byteLength
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw invalid('The body is not UTF-8.')
  }
}

function bodyTooLarge() {
  return tooLarge(`The body has more than ${MAX_BODY_BYTES} bytes.`)
}

/** The status and body of a request that was turned away before any stream. Never tells internals. */
export function rejection(error: unknown): {
  readonly status: number
  readonly body: string
  readonly headers: Record<string, string>
} {
  const known = isCountersignError(error) && typeof error.data.status === 'number'
  const status = known ? Number(error.data.status) : 500
  const told = known
    ? { code: error.code, message: error.message }
    : { code: 'internal', message: 'Something went wrong on the server.' }
  return {
    status,
    body: JSON.stringify({ error: told }),
    headers: {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      ...(status === 405 && { allow: 'POST' }),
    },
  }
}

/**
 * Answers a chat request with its run as an event stream: for servers that speak the Fetch API. A client that goes away stops the
 * model; a call that was claimed runs to its end. A bad request is answered with 400, 405, 413 or 415 and `{ error: { code, message } }`.
 */
export async function handleChat(
  agent: Agent,
  request: Request,
  options: ChatOptions = {},
): Promise<Response> {
  let frames: SseFrames
  try {
    const input = await readRunInput(request)
    const run = agent.run(input, { context: options.context, disconnected: request.signal })
    frames = sseFrames(run, input.runId, options.keepAlive ?? KEEP_ALIVE_MS)
  } catch (error) {
    const { body, ...init } = rejection(error)
    return new Response(body, init)
  }
  const utf8 = new TextEncoder()
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const frame = await frames.next()
      if (frame === undefined) controller.close()
      else controller.enqueue(utf8.encode(frame))
    },
    cancel: () => frames.cancel(),
  })
  return new Response(body, { headers: SSE_HEADERS })
}
