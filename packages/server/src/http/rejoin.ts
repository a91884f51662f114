import type { Agent } from '../run/agent.js'
import { eventNumber, type LoggedEvent } from '../run-log/run-log.js'
import { type Holder, ownerOf, type RunContext, runKey, subjectOf } from '../scope/run-context.js'
import { bytesHeldBy, type Held, takeReply, takeRun } from './quota.js'
import { readersOf, stopNow } from './readers.js'
import { nothing, type Route, respond } from './route.js'
import { checkId, invalid, queryOf } from './run-input.js'
import { type SseFrames, sseFrames } from './sse.js'
import { readBatches } from './unread.js'

/** What a request that only reads brings. */
export interface ThreadOptions {
  /** `subject`: whose thread or run it is. */
  readonly context?: RunContext | undefined
  /** Milliseconds of silence after which a comment is sent to who rejoins a run. Default 15,000. */
  readonly keepAlive?: number | undefined
}

/** A run to rejoin, and the last of its events that the client has. */
interface RejoinRequest {
  readonly threadId: string
  readonly runId: string
  /** 0: from the first event. */
  readonly after: number
}

/**
 * Reads a client's request to rejoin a run.
 *
 * @throws CountersignError `invalid-request`
 */
export function readRejoin(
  { limits }: Agent,
  threadId: unknown,
  runId: unknown,
  lastEventId: unknown,
): RejoinRequest {
  const run = { threadId: checkId('threadId', threadId, limits), runId: checkId('runId', runId, limits) }
  if (lastEventId === undefined) return { ...run, after: 0 }
  const after = typeof lastEventId === 'string' ? eventNumber(run.runId, lastEventId) : undefined
  if (after === undefined) throw invalid('The last event id is not one of that run.')
  return { ...run, after }
}

/**
 * The rest of a run, or undefined if this holder has none to rejoin. A run that is open in this process continues meanwhile. Its share of the
 * quota is released at its end, by `return`, or once `signal` aborts. `before`: what the reader is sent first. That counts in its
 * share of replies, as does a long batch until the next one is read: without room for it, reading fails with `too-many-runs`.
 * Call `return` once the last batch has been sent: `agent.drain` waits for that.
 */
export async function openReplay(
  agent: Agent,
  holder: Holder | undefined,
  { threadId, runId, after }: RejoinRequest,
  signal: AbortSignal,
  before?: unknown,
): Promise<AsyncIterableIterator<readonly LoggedEvent[]> | undefined> {
  if (holder === undefined || signal.aborted) return undefined
  const key = runKey(holder, threadId, runId)
  const held = takeRun(ownerOf(holder), agent.limits)
  const quit = readersOf.get(key)?.join()
  const reading = new AbortController()
  let firstShare: Held | undefined
  const release = () => {
    held.release()
    firstShare?.release()
    reading.abort()
  }
  const leave = () => {
    release()
    quit?.()
    signal.removeEventListener('abort', leave)
  }
  signal.addEventListener('abort', leave)
  let batches: AsyncIterable<readonly LoggedEvent[]> | undefined
  try {
    if (before !== undefined) firstShare = takeReply(ownerOf(holder), bytesHeldBy(before), agent.limits)
    batches = await agent.runLog.read(key, after, reading.signal)
  } finally {
    if (batches === undefined) leave()
  }
  if (batches === undefined) return undefined
  const events = untilRead(batches, release)
  return readBatches(events, ownerOf(holder), agent.limits, async () => {
    // A generator that waits does not react to return(), and one that has not begun runs no `finally`.
    leave()
    await events.return()
  })
}

async function* untilRead(
  batches: AsyncIterable<readonly LoggedEvent[]>,
  release: () => void,
): AsyncGenerator<readonly LoggedEvent[], void, void> {
  try {
    yield* batches
  } finally {
    // Its reader has not sent the last batch yet: it leaves with `return`.
    release()
  }
}

export async function restFrames(
  agent: Agent,
  context: RunContext | undefined,
  request: RejoinRequest,
  gone: AbortSignal,
  keepAlive: number | undefined,
): Promise<SseFrames | undefined> {
  const events = await openReplay(agent, subjectOf(context), request, gone)
  // The reader learns at once that it has rejoined: a run in the middle of a long call may say nothing for a while.
  return events && sseFrames(events, request.runId, keepAlive, ': rejoined\n\n')
}

export const rejoinRoute: Route = {
  allow: 'GET, DELETE',
  async serve(agent, request, { keepAlive }) {
    const { method } = request
    if (method !== 'GET' && method !== 'DELETE') throw invalid('Send a GET or DELETE request.', 405)
    const query = queryOf(request.url)
    const [threadId, runId] = [query.get('threadId'), query.get('runId')]
    const run = readRejoin(agent, threadId, runId, request.header('last-event-id'))
    const context = await request.context()
    if (method === 'GET') return (await restFrames(agent, context, run, request.gone, keepAlive)) ?? nothing
    const holder = subjectOf(context)
    // Another user's run, or one of another process, is not found, and goes on.
    if (holder) stopNow(runKey(holder, run.threadId, run.runId))
    return nothing
  },
}

/**
 * Responds to a GET with `threadId` and `runId` in the query, and an optional `Last-Event-ID`, with the rest of that run, for servers
 * with the Fetch API. 204 if there is nothing to rejoin: the run is unknown, no longer stored, another user's, or was read to its
 * end; the client then retries its request. 429 if the user has too many open runs. Needs `context.subject`, as runs are stored by owner.
 *
 * A DELETE with `threadId` and `runId` stops that run, if it is open in this process: 204 in any case.
 *
 * @throws CountersignError `invalid-option`
 *
 * @example export const GET = (request) => rejoinResponse(agent, request, { context: { subject: await userId(request) } })
 */
export function rejoinResponse(
  agent: Agent,
  request: Request,
  options: ThreadOptions = {},
): Promise<Response> {
  return respond('rejoinResponse', rejoinRoute, agent, request, options)
}
