import { isCountersignError, type Message, type RunAgentInput } from '@countersign/core'
import type { NewId } from '../encoding/ids.js'
import type { AgentSettings } from '../scope/settings.js'
import type { KnownMessage, KnownThread } from '../threads/known-threads.js'
import type { StoredMessage } from '../threads/thread-store.js'
import { withClientTools } from '../tools/toolkit.js'
import { branchOf, type CloseCalls, chain, leaveBranch } from './branch.js'
import { continuedBranch, readPage, replacedBy } from './continued-branch.js'
import { isCutOff, isUnanswered, withoutMark } from './cut-mark.js'
import { gapOf, mergeHistory, uploadedHistory } from './request-history.js'

/** What a run's input says about its thread. */
export type ThreadRequest = Pick<RunAgentInput, 'threadId' | 'runId' | 'messages'> &
  Partial<Pick<RunAgentInput, 'tools' | 'forwardedProps' | 'resume'>>

/** What the records of approvals say about the calls of a thread. */
export interface ThreadCalls {
  readonly closeCalls: CloseCalls
  /** Completes the results among the messages that were added, which begin at `from`. */
  readonly withEdits: (messages: readonly Message[], from: number) => Promise<Message[]>
  readonly stop: AbortSignal
}

/** What a request makes of its thread. */
interface RequestPlan {
  /** The stored conversation with what the request adds. */
  readonly messages: Message[]
  /** What must be stored before the run begins, and the message that the run begins at. */
  readonly change: readonly StoredMessage[]
  readonly head: string | null
  /** Whether the last reply is asked for anew. It stays on the branch that is shown until something has come in its place. */
  readonly isReplaced: boolean
  /** The end of another branch behind `head`, which the run's reply replaces. */
  readonly replaced: string | undefined
  readonly hasNews: boolean
  readonly isAnswered: boolean
  readonly isCut: boolean
  readonly isPageBehind: boolean
}

/** `isRecovery`: the model is not asked about anything. `isUpload`: the messages are the page's copy of a conversation that is not stored. */
export async function planRequest(
  settings: AgentSettings,
  thread: KnownThread | undefined,
  request: ThreadRequest,
  { closeCalls, withEdits, stop }: ThreadCalls,
  newId: NewId,
  { isRecovery, isUpload }: { readonly isRecovery: boolean; readonly isUpload: boolean },
): Promise<RequestPlan> {
  const { messages: given, forwardedProps, resume = [] } = request
  const page = readPage(forwardedProps)
  const shown = thread === undefined ? [] : branchOf(thread)
  const stored = storedFor(thread, shown, request)
  // Stopped while it waited: its page may have gone on with another version, which is to stay.
  if (isCountersignError(stop.reason) && stored.at(-1)?.id !== shown.at(-1)?.id) throw stop.reason
  const history = stored.map(({ message }) => message)
  const merged = isUpload
    ? uploadedHistory(given, newId)
    : await withEdits(merge(settings, thread, history, request, newId), history.length)
  const gap = gapOf(history, given, page.last)
  const isCut = isCutOff(history.at(-1))
  // A late answer, such as that of another page, must not replace a complete reply. Neither must a repeated message, if calls have run before it.
  const isLate = !isCut && (resume.length > 0 || given.at(-1)?.role === 'tool' || gap.lacksCalls)
  const left = merged.length > history.length || isLate ? 0 : gap.unseen
  const kept = stored.slice(0, stored.length - left)
  const closed = await leaveBranch(shown, kept, closeCalls, newId)
  const asked = left > 0 ? merged.slice(0, -left) : merged
  // The model is asked again about a message to which it said nothing: until this run has finished, that has no reply.
  const isAgain = !isRecovery && isUnanswered(asked.at(-1))
  const last = asked.at(-1)
  const messages = isAgain && last ? [...asked.slice(0, -1), withoutMark(last)] : asked
  const from = isAgain ? asked.length - 1 : kept.length
  const added = chain(messages.slice(from), messages[from - 1]?.id ?? null)
  const head = messages.at(-1)?.id ?? null
  const hasNews = messages.length > kept.length || page.regenerate !== undefined
  return {
    messages,
    change: [...closed, ...added],
    head,
    isReplaced: left > 0,
    replaced: thread === undefined || left > 0 ? undefined : replacedBy(thread, shown, head),
    hasNews,
    isAnswered: !hasNews && (gap.lacksTurn || left < gap.unseen),
    isCut,
    // What was left out of an upload must go from the page as well.
    isPageBehind: isUpload || gap.isBehind || left < gap.unseen,
  }
}

/** Whether a request brings messages or results that its thread lacks: one that is sent again, because its response was lost, does not. */
export function bringsNews(
  settings: AgentSettings,
  thread: KnownThread | undefined,
  request: ThreadRequest,
): boolean {
  const stored = storedFor(thread, thread === undefined ? [] : branchOf(thread), request)
  const history = stored.map(({ message }) => message)
  return merge(settings, thread, history, request, () => '').length > history.length
}

function storedFor(
  thread: KnownThread | undefined,
  shown: readonly KnownMessage[],
  { messages, forwardedProps, resume = [] }: ThreadRequest,
): readonly KnownMessage[] {
  return thread === undefined
    ? []
    : continuedBranch(thread, shown, readPage(forwardedProps), messages, resume)
}

function merge(
  settings: AgentSettings,
  thread: KnownThread | undefined,
  history: readonly Message[],
  { messages, tools = [] }: ThreadRequest,
  newId: NewId,
) {
  const toolkit = withClientTools(settings.toolkit, tools, settings.warn)
  return mergeHistory(history, messages, toolkit, thread?.byId ?? new Map(), newId)
}
