import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { RunAgentInput } from '@countersign/core'
import { checkRequest, KEEP_ALIVE_MS, readText, rejection } from './http/http.js'
import { parseRunInput, readParsedInput } from './http/run-input.js'
import { SSE_HEADERS, type SseFrames, sseFrames } from './http/sse.js'
import type { Agent } from './run/agent.js'
import type { RunContext } from './scope/settings.js'

/** A request of node:http, or of Express and its like, which may have parsed the body already. */
export type NodeRequest = IncomingMessage & { readonly body?: unknown }

export interface NodeChatOptions<Req extends NodeRequest = NodeRequest> {
  /** What the application knows of a request: `subject` from its own authentication, and services for its tools. */
  readonly context?: ((request: Req) => RunContext | Promise<RunContext>) | undefined
  /** Milliseconds of silence after which a comment is sent. Default 15,000. */
  readonly keepAlive?: number | undefined
}

/**
 * A handler for node:http and Express that answers a chat request with its run as an event stream. The same as `handleChat`; a
 * body that was parsed already (`express.json()`) is taken as it is.
 */
export function toNodeHandler<Req extends NodeRequest = NodeRequest>(
  agent: Agent,
  options: NodeChatOptions<Req> = {},
): (request: Req, response: ServerResponse) => Promise<void> {
  return async (request, response) => {
    const gone = new AbortController()
    response.on('close', () => gone.abort())
    response.on('error', () => gone.abort())
    let frames: SseFrames
    try {
      const input = await readInput(request)
      const context = await options.context?.(request)
      const run = agent.run(input, { context, disconnected: gone.signal })
      frames = sseFrames(run, input.runId, options.keepAlive ?? KEEP_ALIVE_MS)
    } catch (error) {
      const { status, headers, body } = rejection(error)
      // the rest of a body that is not read would be taken for the next request
      response.writeHead(status, { ...headers, connection: 'close' }).end(body)
      return
    }
    await pipe(frames, response, gone.signal)
  }
}

async function readInput(request: NodeRequest): Promise<RunAgentInput> {
  const { method, headers, body } = request
  checkRequest(method, headers['content-type'], headers['content-length'])
  if (typeof body === 'string') return parseRunInput(body)
  if (body instanceof Uint8Array) return parseRunInput(await readText([body]))
  if (body !== undefined) return readParsedInput(body)
  // giving up a body that is too large must not take the socket away from the answer
  return parseRunInput(await readText(request.iterator({ destroyOnReturn: false })))
}

async function pipe(
  frames: ReturnType<typeof sseFrames>,
  response: ServerResponse,
  gone: AbortSignal,
): Promise<void> {
  response.writeHead(200, SSE_HEADERS)
  response.flushHeaders()
  gone.addEventListener('abort', () => frames.cancel(), { once: true })
  try {
    for (;;) {
      const frame = gone.aborted ? undefined : await frames.next()
      if (frame === undefined) break
      if (!response.write(frame)) await once(response, 'drain', { signal: gone })
    }
  } catch (error) {
    if (!gone.aborted) response.destroy(error instanceof Error ? error : undefined)
  }
  frames.cancel()
  if (!gone.aborted) response.end()
}
