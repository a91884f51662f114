import { type AGUIEvent, CountersignError, type Message, type TokenUsage } from '@countersign/core'
import { newIds } from '../encoding/ids.js'
import type { RunContext } from '../scope/run-context.js'
import type { AgentSettings } from '../scope/settings.js'
import type { KnownThread, KnownThreads } from '../threads/known-threads.js'
import type { ThreadKey } from '../threads/thread-store.js'
import { knownAs } from './known-conversation.js'
import { totalUsage } from './load-thread.js'
import { Recorder } from './recorder.js'
import { titleOf } from './request-history.js'
import { bringsNews, planRequest, type ThreadCalls, type ThreadRequest } from './request-plan.js'
import { restoreRuns } from './restore.js'
import { isFull, isLost, leaveThread, removed, ThreadWriter, takenOver, takeThread } from './thread-writer.js'

/** A stored conversation that one run holds. No other run can change it until it is closed, or its lease ends. */
export interface OpenThread {
  /** The stored conversation with what the request adds to it. */
  readonly messages: Message[]
  /** Whether the request adds messages, or asks for a reply anew. */
  readonly hasNews: boolean
  /** Whether the page lacks some of them, as after a lost reply: the run begins with all of them (MESSAGES_SNAPSHOT). */
  readonly isPageBehind: boolean
  /** Whether the request brings nothing, and another page has gone on: the model is not called behind its last reply. */
  readonly isAnswered: boolean
  /** Whether the last stored reply was cut off. It is continued, even if the request brings nothing. */
  readonly isCut: boolean
  /** Aborted when the run must stop: another run has taken over, or the store failed. `reason` is the error. */
  readonly lost: AbortSignal
  /** What the run uses: the run adds to it, and it is stored with what the run stores. */
  readonly usage: TokenUsage[]
  /**
   * An id for a new message: no message on any branch has it, nor one of the request. `wanted`, if that is free or `mayReplace` allows it.
   */
  newId(wanted?: string, mayReplace?: (id: string) => boolean): string
  /**
   * Takes each event of the run before it is sent. If there is something to wait for, resolves once what must not be lost is stored: calls
   * before they run, and results.
   */
  take(event: AGUIEvent): Promise<void> | undefined
  /** Resolves if there is room for the results of the open calls. Throws what `close` does. */
  keepRoom(): Promise<void>
  /**
   * Stores the rest and releases the thread. Later calls do nothing.
   *
   * @throws CountersignError `thread-busy` if another run has taken over, `thread-full`, `ledger-unavailable`
   */
  close(): Promise<void>
}

/**
 * Takes the thread of a run, adds what the request brings, and stores it. `abandoned`: only if this run was still open on it.
 *
 * @throws CountersignError `thread-busy` (409) if another run is open on this thread: `data.runId` names it; `thread-full` (507);
 * `thread-unknown` (404) if the request continues a conversation, or a message, that is not stored;
 * `ledger-unavailable` if the store can't be reached.
 */
export async function openThread(
  threads: KnownThreads,
  settings: AgentSettings,
  request: ThreadRequest,
  context: RunContext,
  calls: ThreadCalls,
  abandoned?: string,
): Promise<OpenThread> {
  const { threadId, runId } = request
  const key: ThreadKey = { owner: context.subject ?? null, threadId }
  const run = { runId, holder: globalThis.crypto.randomUUID() }
  const { leaseMs } = settings.approvals
  const interrupted = await takeThread(threads, key, run, leaseMs)
  let isChanging = false
  try {
    if (abandoned !== undefined && interrupted.every(({ runId }) => runId !== abandoned))
      throw takenOver(undefined)
    const isRestored = await restoreRuns(threads, settings, key, run, interrupted, abandoned !== undefined)
    const thread = await threads.open(key, settings.limits.cachedThreadBytes)
    if (abandoned !== undefined && thread === undefined) {
      // Nothing was stored before its process died. Left to lapse, the hold would be found again by every `recover`.
      await threads.release(key, run)
      throw removed()
    }
    const isUpload = isCopy(request, thread, settings.acceptUploads)
    const givenIds = new Set(request.messages.map(({ id }) => id))
    const newId = newIds(settings.generateId, (id) => thread?.byId.has(id) === true || givenIds.has(id))
    const isRecovery = abandoned !== undefined
    const plan = await planRequest(settings, thread, request, calls, newId, { isRecovery, isUpload })
    const { messages, change, head, isReplaced, replaced, hasNews, isAnswered, isCut } = plan
    const writer = new ThreadWriter(threads, key, run, thread?.version ?? 0, head ?? '')
    // Unless it begins at the head, it stores at least where it begins: recovery needs to know.
    if (change.length > 0 || head !== (thread?.head ?? null)) {
      isChanging = true
      await writer.append({
        messages: change,
        ...(!isReplaced && { head }),
        ...(thread === undefined && { title: titleOf(messages) }),
      })
    }
    const usedBefore = totalUsage(thread?.usage.get(runId) ?? [])
    const recorder = new Recorder(settings, writer, { messages, isRecovery, replaced, usedBefore })
    return {
      ...{ messages, hasNews, isAnswered, isCut, newId },
      isPageBehind: isRestored || plan.isPageBehind,
      lost: recorder.lost,
      usage: recorder.usage,
      take: (event) => recorder.take(event),
      keepRoom: () => recorder.keepRoom(),
      close: () => recorder.close(),
    }
  } catch (error) {
    // The store may have made the change before it failed. Then a result may be last that the model has not replied to.
    const isUnclear = isChanging && !isLost(error) && !isFull(error)
    await leaveThread(threads, key, run, interrupted.length > 0 || isUnclear).catch(() => {})
    throw error
  }
}

/**
 * Whether a request brings messages or results that its thread lacks: one that is sent again, because its response was lost, does not.
 *
 * @throws CountersignError `ledger-unavailable`
 */
export async function hasNews(
  threads: KnownThreads,
  settings: AgentSettings,
  request: ThreadRequest,
  context: RunContext,
): Promise<boolean> {
  const key: ThreadKey = { owner: context.subject ?? null, threadId: request.threadId }
  return bringsNews(settings, await threads.open(key, settings.limits.cachedThreadBytes), request)
}

/**
 * Whether a request brings the page's copy of a conversation that is to be stored.
 *
 * @throws CountersignError `thread-unknown`
 */
function isCopy(request: ThreadRequest, thread: KnownThread | undefined, acceptUploads: boolean): boolean {
  const found = knownAs(thread, request, acceptUploads)
  if (found !== 'unknown') return found === 'upload'
  const message =
    'The server does not have the conversation that this request continues. Nothing was stored. Load the conversation again, or start a new one.'
  throw new CountersignError('thread-unknown', message, {
    status: 404,
    ...(acceptUploads && thread === undefined && { upload: true }),
  })
}
