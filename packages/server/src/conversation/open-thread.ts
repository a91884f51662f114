import {
  type AGUIEvent,
  CountersignError,
  isRecord,
  type Message,
  type RunAgentInput,
} from '@countersign/core'
import type { RunContext } from '../scope/run-context.js'
import type { AgentSettings } from '../scope/settings.js'
import type { StoredMessage, ThreadKey, ThreadStore } from '../threads/thread-store.js'
import { withClientTools } from '../tools/toolkit.js'
import { branchOf } from './branch.js'
import { gapOf } from './gap.js'
import { mergeHistory } from './merge.js'
import { Recorder } from './recorder.js'
import { ThreadWriter, takeThread } from './thread-writer.js'
import { titleOf } from './title.js'

/** A stored conversation that one run holds. No other run can change it until it is closed, or its lease ends. */
export interface OpenThread {
  /** The stored conversation with what the request adds to it. */
  readonly messages: Message[]
  /** Whether the page lacks some of them, as after a lost reply: the run begins with all of them (MESSAGES_SNAPSHOT). */
  readonly isPageBehind: boolean
  /** Aborted when the run must stop: another run has taken over, or the store failed. `reason` is the error. */
  readonly lost: AbortSignal
  /** Takes each event of the run before it is sent. Resolves once what must not be lost is stored: calls before they run, and results. */
  take(event: AGUIEvent): Promise<void>
  /**
   * Stores the rest and releases the thread. Later calls do nothing.
   *
   * @throws CountersignError `thread-busy` if another run has taken over, `thread-full`, `ledger-unavailable`
   */
  close(): Promise<void>
}

/** What a run's input says about its thread. */
type ThreadRequest = Pick<RunAgentInput, 'threadId' | 'runId' | 'messages'> &
  Partial<Pick<RunAgentInput, 'tools' | 'forwardedProps'>>

/**
 * Takes the thread of a run, adds what the request brings, and stores it.
 *
 * @throws CountersignError `thread-busy` (409) if another run is open on this thread: `data.runId` names it; `thread-full` (413);
 * `thread-unknown` (404) if the request continues a message that the thread does not have;
 * `ledger-unavailable` if the store can't be reached.
 */
export async function openThread(
  threads: ThreadStore,
  settings: AgentSettings,
  { threadId, runId, messages: given, tools = [], forwardedProps }: ThreadRequest,
  context: RunContext = {},
): Promise<OpenThread> {
  const key: ThreadKey = { owner: context.subject ?? null, threadId }
  const run = { runId, holder: globalThis.crypto.randomUUID() }
  const { leaseMs } = settings.approvals
  await takeThread(threads, key, run, leaseMs)
  try {
    const thread = await threads.load(key)
    const stored = thread === undefined ? [] : branchOf(thread)
    const history: readonly Message[] = stored.map(({ message }) => JSON.parse(message))
    const page = readPage(forwardedProps)
    checkKnown(page.after, history)
    const toolkit = withClientTools(settings.toolkit, tools, settings.warn)
    const merged = mergeHistory(history, given, toolkit, settings.generateId)
    const gap = gapOf(history, given, page.last)
    // The answer is asked for anew; the other one stays stored, on a branch of its own.
    const left = merged.length > history.length ? 0 : gap.unseen
    const messages = left > 0 ? merged.slice(0, -left) : merged
    const kept = stored.slice(0, stored.length - left)
    const added = chain(messages.slice(kept.length), kept.at(-1)?.id ?? null)
    const head = (added.at(-1) ?? kept.at(-1))?.id ?? null
    const writer = new ThreadWriter(threads, key, run, thread?.version ?? 0, head ?? '')
    if (added.length > 0 || left > 0)
      await writer.append({
        messages: added,
        head,
        ...(thread === undefined && { title: titleOf(messages) }),
      })
    const recorder = new Recorder(settings, writer, leaseMs, [...kept, ...added], messages)
    return {
      messages,
      isPageBehind: gap.isBehind || left < gap.unseen,
      lost: recorder.lost,
      take: (event) => recorder.take(event),
      close: () => recorder.close(),
    }
  } catch (error) {
    await threads.release(key, run).catch(() => {})
    throw error
  }
}

function chain(messages: readonly Message[], last: string | null): readonly StoredMessage[] {
  return messages.map((message, index) => ({
    id: message.id,
    parent: messages[index - 1]?.id ?? last,
    message: JSON.stringify(message),
  }))
}

/** What a page that leaves its history to the server says about it (`serverHistory` of the client). */
interface PageHistory {
  /** The last user message that was replied to. */
  readonly after?: string | undefined
  /** The last message that the page has and did not send. */
  readonly last?: string | undefined
}

function readPage(forwardedProps: unknown): PageHistory {
  const own = isRecord(forwardedProps) && forwardedProps.countersign
  if (!isRecord(own)) return {}
  const { after, last } = own
  return {
    ...(typeof after === 'string' && { after }),
    ...(typeof last === 'string' && { last }),
  }
}

/** @throws CountersignError `thread-unknown` */
function checkKnown(after: string | undefined, history: readonly Message[]): void {
  if (after === undefined || history.some(({ id }) => id === after)) return
  throw new CountersignError(
    'thread-unknown',
    'The server does not have the conversation that this request continues. Nothing was stored.',
    { status: 404 },
  )
}
