import { CountersignError, type Message, type RunAgentInput } from '@countersign/core'
import type { OpenThread } from '../conversation/open-thread.js'
import { notify } from '../encoding/hooks.js'
import { abortLater, anySignal } from '../encoding/signals.js'
import type { Agent } from '../run/agent.js'
import type { LoggedEvent } from '../run-log/run-log.js'
import { type Holder, ownerOf, runKey, subjectOf } from '../scope/run-context.js'
import { bytesHeldBy, holdMore, takeRun } from './quota.js'
import { whileOpening } from './readers.js'
import type { ChatOptions } from './route-rules.js'
import { serveRun } from './serve-run.js'

/** A run that has taken its thread, and starts when its events are first read. */
export interface StartedRun {
  readonly input: RunAgentInput
  /** The stored conversation with what the request added, where the agent has threads. */
  readonly messages: readonly Message[]
  /** Stored messages that its reader lacks, sent first. */
  readonly again: readonly Message[]
  /** In batches. Call `return` once the last of them has been sent: `agent.drain` and `waitUntil` wait for that. */
  readonly events: AsyncIterableIterator<readonly LoggedEvent[]>
}

/** What a transport knows besides the request. */
interface Connection {
  /** Who holds the run. Default: the context's subject. */
  readonly holder?: Holder | undefined
  /** Stops the run now, also while it waits for its conversation. */
  readonly stopped?: AbortSignal | undefined
  /** Which stored messages its reader is sent first, because it lacks them: they count twice. */
  readonly lacked?: ((messages: readonly Message[]) => readonly Message[]) | undefined
  /** How often the model may be called. Default: the agent's. */
  readonly maxSteps?: number | undefined
}

/**
 * Starts the run of a request, whatever its response is; `gone` aborts when its reader has gone.
 *
 * @throws CountersignError `invalid-option` if `context.subject` is invalid, `too-many-runs`, `thread-busy`, `thread-full`, `truncated-stream` if it
 * was stopped before.
 */
export async function startRun(
  agent: Agent,
  given: RunAgentInput,
  { context, prepare, live = false, goOnFor = 0, waitUntil }: ChatOptions,
  gone: AbortSignal,
  { holder = subjectOf(context), stopped, lacked = () => [], maxSteps }: Connection = {},
): Promise<StartedRun> {
  let held = takeRun(ownerOf(holder), agent.limits, given)
  const left = abortLater(gone, goOnFor)
  const opening = new AbortController()
  let thread: OpenThread | undefined
  try {
    const input = prepare ? ((await agent.callHook(() => prepare(given), left.signal)) ?? given) : given
    if (input !== given) {
      held.release()
      held = takeRun(ownerOf(holder), agent.limits, input)
    }
    const cancel = () => opening.abort(stoppedBefore(input.runId))
    if (stopped?.aborted) cancel()
    stopped?.addEventListener('abort', cancel)
    const opened = whileOpening(holder && runKey(holder, input.threadId, input.runId), cancel)
    thread = await agent.openThread(input, context, anySignal([left.signal, opening.signal])).finally(opened)
    const again = thread ? lacked(thread.messages) : []
    if (thread) holdMore(held, bytesHeldBy(thread.messages) + bytesHeldBy(again), agent.limits)
    const served = serveRun(agent, input, { context, holder, live, goOnFor, held, thread, stopped, maxSteps })
    notify(
      () => waitUntil?.(served.delivered),
      (error) => agent.warn('waitUntil failed: the platform may end the run with its response.', error),
    )
    return { input, messages: thread?.messages ?? input.messages, again, events: served.events }
  } catch (error) {
    held.release()
    await thread?.close().catch(() => {})
    throw error
  } finally {
    left.cancel()
  }
}

function stoppedBefore(runId: string): CountersignError {
  const message =
    'The run was stopped before it began, and another version is shown by now. Nothing was stored.'
  return new CountersignError('truncated-stream', message, { status: 409, runId })
}
