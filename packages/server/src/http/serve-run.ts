import type { RunAgentInput } from '@countersign/core'
import { type AnswerQueue, answerQueue, putAll } from '../channel/answer-queue.js'
import { stoppedByUser } from '../conversation/ending.js'
import type { OpenThread } from '../conversation/open-thread.js'
import { nextTurn, sleep } from '../encoding/signals.js'
import type { Agent } from '../run/agent.js'
import type { LoggedEvent } from '../run-log/run-log.js'
import { createChannel, type Outlet } from '../scope/channel.js'
import { type Holder, ownerOf, type RunContext, runKey } from '../scope/run-context.js'
import { type Held, holdResults, takeEarlyAnswer } from './quota.js'
import { runReaders } from './readers.js'
import { batchSize, readBatches } from './unread.js'

/** How long a request with an answer waits for an approval request that was not made yet. */
const EARLY_MS = 10_000

interface ServeOptions {
  readonly context: RunContext | undefined
  /** Undefined: the run is not stored, and takes no answers while it is open. */
  readonly holder: Holder | undefined
  /** Whether the run stays open while the user decides. */
  readonly live: boolean
  /** Milliseconds that the run continues after its last reader has gone. */
  readonly goOnFor: number
  /** The run's share of the quota; released by its end, or by a reader that leaves before the start. */
  readonly held: Held
  /** The run's thread, if the agent has threads. */
  readonly thread: OpenThread | undefined
  /** Stops the run now, whatever `goOnFor` is. */
  readonly stopped: AbortSignal | undefined
  /** How often the model may be called. Default: the agent's. */
  readonly maxSteps: number | undefined
}

/** A run as transports send it. */
interface ServedRun {
  /** Numbered events, in batches. A reader that calls `return` has gone. */
  readonly events: AsyncIterableIterator<readonly LoggedEvent[]>
  /**
   * Resolves when the run has ended, its events are stored, and all of its readers in this process have left: each calls `return` once it
   * has sent the last of them. One that has not left `limits.stallTime` later is not waited for.
   */
  readonly delivered: Promise<void>
}

/**
 * Serves a run: numbered, stored in the run log, and open to answers. It starts when it is first read.
 *
 * @throws CountersignError `invalid-option` if `context.subject` is invalid.
 */
export function serveRun(agent: Agent, input: RunAgentInput, options: ServeOptions): ServedRun {
  const { context, holder, goOnFor, held, thread, stopped, maxSteps } = options
  const key = holder && runKey(holder, input.threadId, input.runId)
  const reserve = (size: number) => takeEarlyAnswer(ownerOf(holder), size, agent.limits)?.release
  const isOpen = options.live && key !== undefined
  const answers = isOpen ? answerQueue({ keepEarly: EARLY_MS, reserve }) : undefined
  // Nobody can rejoin a run that belongs to one socket.
  const kept = holder?.kind === 'subject'
  const stopping = new AbortController()
  const stop = () => stopping.abort(stoppedByUser)
  const leave = () => stopping.abort()
  if (stopped?.aborted) stop()
  stopped?.addEventListener('abort', stop)
  let deliver = () => {}
  const delivered = new Promise<void>((resolve) => {
    deliver = resolve
  })
  const hold = holdResults(held, agent.limits)
  const known = { context, disconnected: stopping.signal, thread, delivered, hold, maxSteps }
  const run = agent.run(input, { ...known, answers })
  let began = false
  let left: AbortSignal | undefined
  const write = async ({ emit, gone }: Outlet<readonly LoggedEvent[]>) => {
    began = true
    const readers = kept && key !== undefined ? runReaders(key, goOnFor, stop, leave) : undefined
    gone.addEventListener('abort', readers?.join() ?? leave)
    left = readers?.left ?? gone
    const close = answers && key !== undefined ? await openToAnswers(agent, key, answers) : undefined
    // No answer could reach the run: it ends with its approval requests, and the answers come with a later request.
    const told = answers && close === undefined ? agent.run(input, known) : run
    const record = kept && key !== undefined ? await agent.runLog.begin(key) : undefined
    let n = 0
    try {
      for (let first = await told.next(); !first.done; first = await told.next()) {
        // What comes with one read of the model is stored and sent together.
        await nextTurn()
        const texts = [first.value, ...(told.waiting?.() ?? [])].map((event) => JSON.stringify(event))
        const stored = record?.append(texts)
        if (stored !== undefined) await stored
        const full = emit(texts.map((data) => ({ n: ++n, data })))
        if (full !== undefined) await full
      }
    } catch (error) {
      // An event that is no JSON, or a run log that fails.
      await told.return?.()
      throw error
    } finally {
      readers?.end()
      await record?.end()
      held.release()
      if (close) await close()
    }
  }
  const { limits } = agent
  const events = createChannel(
    (outlet: Outlet<readonly LoggedEvent[]>) =>
      write(outlet).finally(() => void sleep(limits.stallTime, left, false).then(deliver)),
    { sizeOf: batchSize, limits },
  )
  const served = readBatches(events, ownerOf(holder), limits, async () => {
    // The server has taken what the request brought, so it is carried out like that of a reader who leaves later.
    if (!began && goOnFor > 0 && kept && isNews(input, thread)) void events.next()
    // First, so that a read which comes meanwhile does not start the run.
    const left = events.return?.()
    if (!began) await Promise.allSettled([thread?.close(), held.release()]).then(deliver)
    await left
  })
  return { events: served, delivered }
}

/** Whether the request brings a message, a result or an answer. Repeated without its reader, the run would only ask the model again. */
function isNews({ resume = [] }: RunAgentInput, thread: OpenThread | undefined): boolean {
  return thread === undefined || thread.hasNews || resume.length > 0
}

/** Opens a run to answers and returns the function that closes it; undefined if the channel fails. */
async function openToAnswers(
  agent: Agent,
  key: string,
  answers: AnswerQueue,
): Promise<(() => Promise<void>) | undefined> {
  try {
    return await agent.answerChannel.open(key, (entries, context) => putAll(answers, entries, context))
  } catch {
    return undefined
  }
}
