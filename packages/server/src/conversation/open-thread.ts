import {
  type AGUIEvent,
  asString,
  CountersignError,
  isCountersignError,
  isRecord,
  type Message,
  type RunAgentInput,
  type TokenUsage,
} from '@countersign/core'
import { newIds } from '../encoding/ids.js'
import type { RunContext } from '../scope/run-context.js'
import type { AgentSettings } from '../scope/settings.js'
import type { KnownMessage, KnownThread, KnownThreads } from '../threads/known-threads.js'
import type { ThreadKey } from '../threads/thread-store.js'
import { withClientTools } from '../tools/toolkit.js'
import { branchOf, type CloseCalls, chain, headOf, leaveBranch } from './branch.js'
import { isCutOff, isUnanswered, withoutMark } from './cut-mark.js'
import { totalUsage } from './load-thread.js'
import { Recorder } from './recorder.js'
import { gapOf, mergeHistory, titleOf, uploadedHistory } from './request-history.js'
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
  /**
   * Stores the rest and releases the thread. Later calls do nothing.
   *
   * @throws CountersignError `thread-busy` if another run has taken over, `thread-full`, `ledger-unavailable`
   */
  close(): Promise<void>
}

/** What the records of approvals say about the calls of a thread. */
interface ThreadCalls {
  readonly closeCalls: CloseCalls
  /** Completes the results among the messages that were added, which begin at `from`. */
  readonly withEdits: (messages: readonly Message[], from: number) => Promise<Message[]>
  readonly stop: AbortSignal
}

/** What a run's input says about its thread. */
type ThreadRequest = Pick<RunAgentInput, 'threadId' | 'runId' | 'messages'> &
  Partial<Pick<RunAgentInput, 'tools' | 'forwardedProps' | 'resume'>>

/**
 * Takes the thread of a run, adds what the request brings, and stores it. `abandoned`: only if this run was still open on it.
 *
 * @throws CountersignError `thread-busy` (409) if another run is open on this thread: `data.runId` names it; `thread-full` (507);
 * `thread-unknown` (404) if the request continues a message that the thread does not have;
 * `ledger-unavailable` if the store can't be reached.
 */
export async function openThread(
  threads: KnownThreads,
  settings: AgentSettings,
  { threadId, runId, messages: given, tools = [], forwardedProps, resume = [] }: ThreadRequest,
  context: RunContext,
  { closeCalls, withEdits, stop }: ThreadCalls,
  abandoned?: string,
): Promise<OpenThread> {
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
    const shown = thread === undefined ? [] : branchOf(thread)
    const page = readPage(forwardedProps)
    const isUpload = page.isUpload && thread === undefined && settings.acceptUploads
    if (!isUpload) checkKnown(page.after, thread, settings.acceptUploads)
    const known = thread?.byId ?? new Map<string, KnownMessage>()
    const givenIds = new Set(given.map(({ id }) => id))
    const newId = newIds(settings.generateId, (id) => known.has(id) || givenIds.has(id))
    const stored = thread === undefined ? [] : continuedBranch(thread, shown, page, given, resume)
    // Stopped while it waited: its page may have gone on with another version, which is to stay.
    if (isCountersignError(stop.reason) && stored.at(-1)?.id !== shown.at(-1)?.id) throw stop.reason
    const history = stored.map(({ message }) => message)
    const toolkit = withClientTools(settings.toolkit, tools, settings.warn)
    const merged = isUpload
      ? uploadedHistory(given)
      : await withEdits(mergeHistory(history, given, toolkit, known, newId), history.length)
    const gap = gapOf(history, given, page.last)
    const isCut = isCutOff(history.at(-1))
    // An answer that comes late, such as that of another page, is no reason to replace a complete reply.
    const isLate = !isCut && (resume.length > 0 || given.at(-1)?.role === 'tool')
    // The reply is asked for anew; the other one stays stored, on a branch of its own.
    const left = merged.length > history.length || isLate ? 0 : gap.unseen
    const asked = left > 0 ? merged.slice(0, -left) : merged
    const kept = stored.slice(0, stored.length - left)
    const closed = await leaveBranch(shown, kept, closeCalls, newId)
    // The model is asked again about a message to which it said nothing: until this run has finished, that has no reply.
    const isAgain = abandoned === undefined && isUnanswered(asked.at(-1))
    const messages = isAgain
      ? asked.map((message, at) => (at < asked.length - 1 ? message : withoutMark(message)))
      : asked
    const from = isAgain ? asked.length - 1 : kept.length
    const added = chain(messages.slice(from), messages[from - 1]?.id ?? null)
    const head = (added.at(-1) ?? kept.at(-1))?.id ?? null
    const writer = new ThreadWriter(threads, key, run, thread?.version ?? 0, head ?? '')
    // Unless it begins at the head, it stores at least where it begins: recovery needs to know. An answer that is asked for anew stays on the
    // branch that is shown until something has come in its place.
    if (added.length + closed.length > 0 || head !== (thread?.head ?? null)) {
      isChanging = true
      await writer.append({
        messages: [...closed, ...added],
        ...(left === 0 && { head }),
        ...(thread === undefined && { title: titleOf(messages) }),
      })
    }
    const usedBefore = totalUsage(thread?.usage.get(runId) ?? [])
    const isRecovery = abandoned !== undefined
    const replaced = thread === undefined || left > 0 ? undefined : replacedBy(thread, shown, head)
    const recorder = new Recorder(settings, writer, { messages, isRecovery, replaced, usedBefore })
    const hasNews = messages.length > kept.length || page.regenerate !== undefined
    return {
      messages,
      hasNews,
      isAnswered: !hasNews && (gap.lacksTurn || left < gap.unseen),
      isCut,
      // What was left out of an upload must go from the page as well.
      isPageBehind: isUpload || isRestored || gap.isBehind || left < gap.unseen,
      lost: recorder.lost,
      usage: recorder.usage,
      newId,
      take: (event) => recorder.take(event),
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
  { threadId, messages: given, tools = [], forwardedProps, resume = [] }: ThreadRequest,
  context: RunContext,
): Promise<boolean> {
  const key: ThreadKey = { owner: context.subject ?? null, threadId }
  const thread = await threads.open(key, settings.limits.cachedThreadBytes)
  const page = readPage(forwardedProps)
  const stored = thread === undefined ? [] : continuedBranch(thread, branchOf(thread), page, given, resume)
  const history = stored.map(({ message }) => message)
  const toolkit = withClientTools(settings.toolkit, tools, settings.warn)
  const known = thread?.byId ?? new Map<string, KnownMessage>()
  return mergeHistory(history, given, toolkit, known, () => '').length > history.length
}

interface PageHistory {
  /** The last user message that was replied to (`serverHistory` of the client). */
  readonly after?: string | undefined
  /** The last message that the page has and did not send. */
  readonly last?: string | undefined
  /** The user message that is to be replied to anew. */
  readonly regenerate?: string | undefined
  /** The user message that the new one replaces. */
  readonly edit?: string | undefined
  /** The messages are the page's copy of the whole conversation. */
  readonly isUpload: boolean
}

/** What `serverThreads` says with a request. */
export function readPage(forwardedProps: unknown): PageHistory {
  const own = isRecord(forwardedProps) && forwardedProps.countersign
  if (!isRecord(own)) return { isUpload: false }
  const { after, last, regenerate, edit, upload } = own
  return {
    after: asString(after),
    last: asString(last),
    regenerate: asString(regenerate),
    edit: asString(edit),
    isUpload: upload === true,
  }
}

/**
 * The branch that the request continues: another than the one that is shown if it replaces a message, or if its user wrote it below
 * another version, which was shown then. A message that the thread does not have replaces none, and without a new message nothing is
 * replaced. What is sent again, because its response was lost, continues the branch that it is on; answers and results
 * count on the one that is shown.
 */
function continuedBranch(
  { messages, byId }: KnownThread,
  shown: readonly KnownMessage[],
  { after, regenerate, edit }: PageHistory,
  given: readonly Message[],
  answers: readonly unknown[],
): readonly KnownMessage[] {
  const find = (id: string | undefined) => (id === undefined ? undefined : byId.get(id))
  const to = (head: string | null | undefined) => branchOf({ head: head ?? null, messages, byId })
  const again = find(regenerate)
  if (again !== undefined) return to(again.id)
  const users = new Set(given.flatMap(({ role, id }) => (role === 'user' ? id : [])))
  const replaced = find(edit)
  if (replaced !== undefined) {
    const isVersion = ({ id, parent }: KnownMessage) => id !== edit && parent === replaced.parent
    const made = messages.findLast((message) => isVersion(message) && users.has(message.id))
    if (made !== undefined) return to(headOf(messages, made.id))
  }
  const isNew = [...users].some((id) => !byId.has(id))
  if (isNew && replaced !== undefined) return to(replaced.parent)
  const sent = given.findLast(({ role, id }) => role === 'user' && byId.has(id))
  // A page that names no message before those that it sends may send all that it has.
  const isSentAgain = after === undefined ? sent === given.at(-1) : given.every(({ role }) => role !== 'tool')
  const last =
    (isSentAgain && answers.length === 0 ? find(sent?.id) : undefined) ?? (isNew ? find(after) : undefined)
  return last === undefined || shown.includes(last) ? shown : to(headOf(messages, last.id))
}

/** The end of what is stored behind the user message `last`: of what was shown, or else the newest. */
function replacedBy(
  { head, messages, byId }: KnownThread,
  shown: readonly KnownMessage[],
  last: string | null,
): string | undefined {
  if (last === null || byId.get(last)?.message.role !== 'user') return undefined
  const end = head !== last && shown.some(({ id }) => id === last) ? head : headOf(messages, last)
  return end === null || end === last ? undefined : end
}

/** @throws CountersignError `thread-unknown` */
function checkKnown(
  after: string | undefined,
  thread: KnownThread | undefined,
  acceptUploads: boolean,
): void {
  if (after === undefined || thread?.byId.has(after)) return
  const message = 'The server does not have the conversation that this request continues. Nothing was stored.'
  throw new CountersignError('thread-unknown', message, {
    status: 404,
    ...(acceptUploads && thread === undefined && { upload: true }),
  })
}
