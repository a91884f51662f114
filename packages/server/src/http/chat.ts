import { isCountersignError, type Message, type RunAgentInput } from '@countersign/core'
import type { OpenThread } from '../conversation/open-thread.js'
import { checkOptions } from '../encoding/check-options.js'
import type { Agent } from '../run/agent.js'
import type { LoggedEvent } from '../run-log/run-log.js'
import type { RunContext } from '../scope/run-context.js'
import { ownerOf, subjectOf } from './holder.js'
import { readRequest, rejection } from './http.js'
import { takeRun } from './quota.js'
import { restFrames } from './rejoin.js'
import { routeRules } from './route-rules.js'
import { serveRun } from './serve-run.js'
import { KEEP_ALIVE_MS, SSE_HEADERS, type SseFrames, sseBody, sseFrames } from './sse.js'

export interface ChatOptions {
  /** What the application knows about this request: `subject` from its own authentication, and services for its tools. */
  readonly context?: RunContext | undefined
  /** The longest silence, in milliseconds: a comment is sent before. Default 15,000. */
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
  /**
   * Receives a promise that resolves when the run has ended and is stored, which may be after the response (`goOnFor`). For platforms that
   * stop work after the response unless they know of it: `waitUntil: (work) => ctx.waitUntil(work)` on Cloudflare Workers, `waitUntil` of
   * `@vercel/functions` on Vercel. Default: none, for servers that keep running.
   */
  readonly waitUntil?: ((work: Promise<void>) => void) | undefined
}

/**
 * Responds to a chat request with its run as an event stream, for servers with the Fetch API. A client that disconnects stops the
 * model; a claimed call may finish (`approvals.wait`). A rejected request gets 400, 405, 408, 413, 415 or 429 and
 * `{ error: { code, message } }`. Authenticate before you call it: the body is read only here.
 *
 * @throws CountersignError `invalid-option`
 */
export async function handleChat(
  agent: Agent,
  request: Request,
  options: ChatOptions = {},
): Promise<Response> {
  checkOptions('handleChat', options, routeRules)
  let frames: SseFrames
  try {
    const arrival = { owner: subjectOf(options.context)?.id, limits: agent.limits }
    const input = await readRequest(request, arrival)
    frames = await chatFrames(agent, input, options, request.signal)
  } catch (error) {
    const { body, ...init } = rejection(agent, error)
    return new Response(body, init)
  }
  return new Response(sseBody(frames), { headers: SSE_HEADERS })
}

/**
 * The run of a request as frames; `gone` aborts when its reader has gone. Where the agent has threads, a run that was posted before is
 * joined from its first event instead of started again.
 *
 * @throws CountersignError `invalid-option` if `context.subject` is invalid, `too-many-runs`, `thread-busy`, `thread-full`.
 */
export async function chatFrames(
  agent: Agent,
  given: RunAgentInput,
  options: ChatOptions,
  gone: AbortSignal,
): Promise<SseFrames> {
  const { context, keepAlive = KEEP_ALIVE_MS } = options
  const { threadId, runId } = given
  const join = () => restFrames(agent, context, { threadId, runId, after: 0 }, gone, keepAlive)
  const joined = agent.threads && (await join())
  if (joined !== undefined) return joined
  let run: StartedRun
  try {
    run = await startRun(agent, given, options)
  } catch (error) {
    const begun = isOpenAlready(error, runId) ? await soon(join, gone) : undefined
    if (begun !== undefined) return begun
    throw error
  }
  const frames = sseFrames(run.events, run.input.runId, keepAlive)
  if (gone.aborted) frames.cancel()
  else gone.addEventListener('abort', frames.cancel, { once: true })
  return frames
}

/** A run that has taken its thread, and starts when its events are first read. */
export interface StartedRun {
  readonly input: RunAgentInput
  /** The stored conversation with what the request added, where the agent has threads. */
  readonly messages: readonly Message[]
  /** In batches. */
  readonly events: AsyncIterableIterator<readonly LoggedEvent[]>
}

/** Starts the run of a request, whatever its response is. Throws as `chatFrames`. */
export async function startRun(
  agent: Agent,
  given: RunAgentInput,
  { context, prepare, live = false, goOnFor = 0, waitUntil }: ChatOptions,
): Promise<StartedRun> {
  const holder = subjectOf(context)
  let held = takeRun(ownerOf(holder), agent.limits, given)
  let thread: OpenThread | undefined
  try {
    const input = (await prepare?.(given)) ?? given
    if (input !== given) {
      held.release()
      held = takeRun(ownerOf(holder), agent.limits, input)
    }
    thread = await agent.openThread(input, context)
    const { events, delivered } = serveRun(agent, input, { context, holder, live, goOnFor, held, thread })
    waitUntil?.(delivered)
    return { input, messages: thread?.messages ?? input.messages, events }
  } catch (error) {
    held.release()
    await thread?.close().catch(() => {})
    throw error
  }
}

function isOpenAlready(error: unknown, runId: string): boolean {
  return isCountersignError(error) && error.code === 'thread-busy' && error.data.runId === runId
}

/** Milliseconds to wait for a run that has taken its thread but not begun its record. */
const SOON_MS = 2000

async function soon<T>(find: () => Promise<T | undefined>, gone: AbortSignal): Promise<T | undefined> {
  for (const until = Date.now() + SOON_MS; !gone.aborted && Date.now() < until; ) {
    const found = await find()
    if (found !== undefined) return found
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return undefined
}
