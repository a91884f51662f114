import { CountersignError, type Message, type TokenUsage, type UIMessage } from '@countersign/core'
import { fromAGUIMessages } from '@countersign/core/ag-ui'
import { warnOnce } from '../encoding/warn-once.js'
import type { StoredThread, ThreadKey, ThreadStore } from '../threads/thread-store.js'
import { shownMessages } from './branch.js'

interface ThreadKeeper {
  readonly threads?: ThreadStore | undefined
  warn?(message: string): void
}

/** The run that is open on a thread. */
export interface OpenRun {
  readonly runId: string
  /** Its process has probably died: it has not renewed its hold in time. */
  readonly lapsed: boolean
  /** Which of the stored messages (AG-UI) are its own. A reader who rejoins the run from its first event leaves them out. */
  readonly messageIds: readonly string[]
  /** It makes a new version of a reply that the conversation has already. */
  readonly isVersion: boolean
}

/** A stored conversation, as a page shows it. */
export interface LoadedThread {
  readonly threadId: string
  /** Rises by 1 with each change of the messages. */
  readonly version: number
  readonly title?: string | undefined
  /** When it began, in milliseconds since the epoch. */
  readonly createdAt: number
  /** The id of the last of the stored messages (AG-UI). */
  readonly head: string | null
  /**
   * For `initialMessages`. Open approval requests are in them. Where an edit or a regeneration made several versions of a message,
   * `metadata.countersign.versions` has the ids of all of them, oldest first.
   */
  readonly messages: readonly UIMessage[]
  /** The run that is open now. */
  readonly run?: OpenRun | undefined
  /** The tokens that all its runs have used, on all branches: one entry for each model. Absent in a response to `since`. */
  readonly usage?: readonly TokenUsage[] | undefined
}

/**
 * Loads a conversation on the server, for example for the `initialMessages` of a page that is rendered there. `undefined`: this user has
 * no such thread.
 *
 * @throws CountersignError `invalid-option` if the agent has no threads; `ledger-unavailable`
 */
export async function loadThread(
  agent: ThreadKeeper,
  { subject, threadId }: { readonly subject?: string | undefined; readonly threadId: string },
): Promise<LoadedThread | undefined> {
  const thread = await readThread(threadsOf(agent), { owner: subject ?? null, threadId })
  return thread && { ...thread, messages: fromAGUIMessages(thread.messages) }
}

interface ReadThread extends Omit<LoadedThread, 'messages'> {
  readonly messages: readonly Message[]
  /** With `since`: the id of the message before each of them. */
  readonly parents?: readonly (string | null)[] | undefined
}

/** The same with AG-UI messages. `since`: only those, of any branch, that were added or replaced after that version. */
export async function readThread(
  threads: ThreadStore,
  key: ThreadKey,
  since?: number,
): Promise<ReadThread | undefined> {
  const stored = await threads.load(key, since)
  if (stored === undefined) return undefined
  const { threadId, version, title, createdAt, head } = stored
  if (since === undefined) {
    const messages = shownMessages(stored)
    const usage = totalUsage(stored.usage.flatMap((run) => run.usage))
    return { threadId, version, title, createdAt, head, messages, run: openRunOf(stored, messages), usage }
  }
  const messages = stored.messages.map(({ message }): Message => JSON.parse(message))
  const parents = stored.messages.map(({ parent }) => parent)
  return { threadId, version, title, createdAt, head, messages, parents, run: openRunOf(stored, messages) }
}

/** Of the shown messages, the run's own were added after the others. */
function openRunOf({ run, messages: all }: StoredThread, messages: readonly Message[]): OpenRun | undefined {
  if (run === undefined) return undefined
  const { runId, lapsed, cursor: last } = run
  const shown = new Set(messages.map(({ id }) => id))
  const added = last === undefined ? [] : all.slice(all.findIndex(({ id }) => id === last) + 1)
  const messageIds = added.flatMap(({ id }) => (shown.has(id) ? [id] : []))
  const isVersion = all.some(({ id, parent }) => parent === last && !shown.has(id))
  return { runId, lapsed, messageIds, isVersion }
}

/**
 * The store of an agent's conversations. The developer is told of a page that asks for one where there is none: without an answer, a page of
 * `serverThreads` sends nothing, and what such a page does send is not the whole conversation.
 *
 * @throws CountersignError `invalid-option` (`data.status` 501)
 */
export function threadsOf<T extends ThreadStore>(agent: {
  readonly threads?: T | undefined
  warn?(message: string): void
}): T {
  if (agent.threads !== undefined) return agent.threads
  const message =
    'This agent keeps no conversations, so none can be loaded: give createAgent `threads`, for example `threads: memoryThreads()` to try it.'
  if (agent.warn) warnOnce((text) => agent.warn?.(text), message)
  throw new CountersignError('invalid-option', message, { option: 'threads', status: 501 })
}

/** The sum of what was used: one entry for each provider and model, in the order of their first use. */
export function totalUsage(used: readonly TokenUsage[]): readonly TokenUsage[] {
  const totals = new Map<string, TokenUsage>()
  for (const one of used) {
    const key = JSON.stringify([one.provider, one.model])
    const total = totals.get(key)
    totals.set(key, total === undefined ? one : added(total, one))
  }
  return [...totals.values()]
}

const COUNTS = [
  'inputTokens',
  'outputTokens',
  'totalTokens',
  'reasoningTokens',
  'cachedInputTokens',
  'cacheWriteInputTokens',
] as const

/** A count that neither has stays absent. */
function added(total: TokenUsage, one: TokenUsage): TokenUsage {
  const sum: TokenUsage = { ...total }
  for (const name of COUNTS) if (one[name] !== undefined) sum[name] = (total[name] ?? 0) + one[name]
  return sum
}
