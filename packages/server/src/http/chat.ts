import { CountersignError, isCountersignError, type RunAgentInput } from '@countersign/core'
import { sleep } from '../encoding/signals.js'
import type { Agent } from '../run/agent.js'
import { askedBy, wasAsked } from '../run/asked-by.js'
import { ownerOf, type RunContext, runKey, subjectOf } from '../scope/run-context.js'
import { restFrames } from './rejoin.js'
import { checkPost, type Route, respond, whileHeld } from './route.js'
import type { ChatOptions } from './route-rules.js'
import { readParsedInput } from './run-input.js'
import { type SseFrames, sseFrames } from './sse.js'
import { type StartedRun, startRun } from './start-run.js'

/**
 * Responds to a chat request with its run as an event stream, for servers with the Fetch API. A client that disconnects stops the
 * model; a claimed call may finish (`approvals.wait`). A rejected request gets 400, 405, 408, 413, 415 or 429 and
 * `{ error: { code, message } }`. Authenticate before you call it: the body is read only here.
 *
 * @throws CountersignError `invalid-option`
 */
export function handleChat(agent: Agent, request: Request, options: ChatOptions = {}): Promise<Response> {
  return respond('handleChat', chatRoute, agent, request, options)
}

export const chatRoute: Route = {
  allow: 'POST',
  async serve(agent, request, options) {
    checkPost(request, agent)
    // Identify the user first: an unknown caller must not fill memory with a body.
    const context = await request.context()
    const { limits } = agent
    const body = await request.readBody({ owner: subjectOf(context)?.id, limits })
    return chatFrames(agent, readParsedInput(body, limits), { ...options, context }, request.gone)
  },
}

/**
 * The run of a request as frames; `gone` aborts when its reader has gone. Where the agent has threads, a run that was posted before is
 * joined from its first event instead of started again.
 *
 * @throws CountersignError `invalid-option` if `context.subject` is invalid, `too-many-runs`, `run-id-used`, `thread-busy`, `thread-full`.
 */
async function chatFrames(
  agent: Agent,
  given: RunAgentInput,
  options: ChatOptions,
  gone: AbortSignal,
): Promise<SseFrames> {
  const { context, keepAlive } = options
  const { threadId, runId } = given
  const owner = ownerOf(subjectOf(context))
  const join = async () => {
    const rest = await restFrames(agent, context, { threadId, runId, after: 0 }, gone, keepAlive)
    try {
      if (rest !== undefined && (await isOther(agent, given, options, gone))) throw runIdUsed(runId)
      return rest
    } catch (error) {
      rest?.cancel()
      throw error
    }
  }
  const joined = agent.threads && (await whileHeld(owner, given, agent, join))
  if (joined !== undefined) return joined
  let run: StartedRun
  try {
    run = await startRun(agent, given, options, gone)
  } catch (error) {
    const begun = isOpenAlready(error, runId)
      ? await whileHeld(owner, given, agent, () => soon(join, gone))
      : undefined
    if (begun !== undefined) return begun
    throw error
  }
  return sseFrames(run.events, run.input.runId, keepAlive)
}

/** Whether a request under the id of a known run is another one than the run's. What `prepare` makes of it may be stored in its place. */
async function isOther(
  agent: Agent,
  given: RunAgentInput,
  { context, prepare }: ChatOptions,
  gone: AbortSignal,
): Promise<boolean> {
  const isNew = async (input: RunAgentInput) =>
    (await agent.hasNews(input, context)) || (await asksAnew(agent, input, context, gone))
  if (!(await isNew(given))) return false
  return prepare === undefined || isNew((await agent.callHook(() => prepare(given), gone)) ?? given)
}

/** Whether a request brings answers, or asks for a reply anew, and the known run under its id was begun by another one. */
async function asksAnew(
  agent: Agent,
  input: RunAgentInput,
  context: RunContext | undefined,
  gone: AbortSignal,
): Promise<boolean> {
  const asked = await askedBy(input)
  const holder = subjectOf(context)
  if (asked === undefined || holder === undefined) return false
  const key = runKey(holder, input.threadId, input.runId)
  for await (const [first] of (await agent.runLog.read(key, 0, gone, { wait: false })) ?? [])
    if (first !== undefined) return !wasAsked(JSON.parse(first.data), asked)
  return false
}

function runIdUsed(runId: string): CountersignError {
  const message =
    'Another request was sent under this runId before. Nothing was stored: send this one with another runId.'
  return new CountersignError('run-id-used', message, { status: 409, runId })
}

function isOpenAlready(error: unknown, runId: string): boolean {
  return isCountersignError(error) && error.code === 'thread-busy' && error.data.runId === runId
}

/** Milliseconds to wait for a run that has taken its thread but not begun its record: a store may be slow. */
const SOON_MS = 10_000

async function soon<T>(find: () => Promise<T | undefined>, gone: AbortSignal): Promise<T | undefined> {
  const until = performance.now() + SOON_MS
  // Many may wait for one run, and each look asks the store, which is slow already.
  for (let pause = 50; !gone.aborted && performance.now() < until; pause = Math.min(2 * pause, 1000)) {
    const found = await find()
    if (found !== undefined) return found
    await sleep(pause, gone)
  }
  return undefined
}
