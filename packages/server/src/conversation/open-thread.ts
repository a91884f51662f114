import {
  type AGUIEvent,
  CountersignError,
  isRecord,
  type Message,
  type RunAgentInput,
  StreamProcessor,
  type TokenUsage,
} from '@countersign/core'
import { fullSteps } from '@countersign/core/ag-ui'
import type { RunContext } from '../scope/run-context.js'
import type { AgentSettings } from '../scope/settings.js'
import type {
  HoldResult,
  RunHold,
  StoredMessage,
  ThreadChange,
  ThreadKey,
  ThreadStore,
} from '../threads/thread-store.js'
import { withClientTools } from '../tools/toolkit.js'
import { BranchDiff, branchOf } from './branch.js'
import { mergeHistory } from './merge.js'

/** A stored conversation that one run holds. No other run can change it until it is closed, or its lease ends. */
export interface OpenThread {
  /** The stored conversation with what the request adds to it. */
  readonly messages: Message[]
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

/** Milliseconds between two saves of text that is still arriving. */
const SAVE_EVERY = 1000

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
    checkKnown(forwardedProps, history)
    const toolkit = withClientTools(settings.toolkit, tools, settings.warn)
    const messages = mergeHistory(history, given, toolkit, settings.generateId)
    const added = chain(messages.slice(history.length), stored.at(-1)?.id ?? null)
    const writer = new ThreadWriter(threads, key, run, thread?.version ?? 0)
    if (added.length > 0) await writer.append({ messages: added, head: added.at(-1)?.id ?? null })
    const recorder = new Recorder(settings, writer, leaseMs, [...stored, ...added], messages)
    return {
      messages,
      lost: recorder.lost,
      take: (event) => recorder.take(event),
      close: () => recorder.close(),
    }
  } catch (error) {
    await threads.release(key, run).catch(() => {})
    throw error
  }
}

/** Milliseconds to wait for a run that is ending: a client that has just stopped may send its next message at once. */
const WAIT_MS = 1000

async function takeThread(
  threads: ThreadStore,
  key: ThreadKey,
  run: RunHold,
  leaseMs: number,
): Promise<void> {
  for (const until = Date.now() + WAIT_MS; ; ) {
    const held = await threads.hold(key, run, leaseMs)
    if (held.status !== 'busy' || held.runId === run.runId || Date.now() >= until) return checkHeld(held)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

function chain(messages: readonly Message[], last: string | null): readonly StoredMessage[] {
  return messages.map((message, index) => ({
    id: message.id,
    parent: messages[index - 1]?.id ?? last,
    message: JSON.stringify(message),
  }))
}

/** Changes one thread under one hold. */
class ThreadWriter {
  readonly #threads: ThreadStore
  readonly #key: ThreadKey
  readonly #run: RunHold
  #version: number

  constructor(threads: ThreadStore, key: ThreadKey, run: RunHold, version: number) {
    this.#threads = threads
    this.#key = key
    this.#run = run
    this.#version = version
  }

  get run() {
    return this.#run
  }

  async append(change: Omit<ThreadChange, 'version' | 'run'>): Promise<void> {
    const result = await this.#threads.append(this.#key, {
      ...change,
      version: this.#version,
      run: this.#run,
    })
    if (result.status === 'full') throw threadFull(result.limit)
    if (result.status !== 'appended') throw takenOver()
    this.#version = result.version
  }

  async renew(leaseMs: number): Promise<void> {
    checkHeld(await this.#threads.hold(this.#key, this.#run, leaseMs))
  }

  release(): Promise<void> {
    return this.#threads.release(this.#key, this.#run)
  }
}

/** Keeps the conversation of an open run, and stores it. */
class Recorder {
  readonly #settings: AgentSettings
  readonly #writer: ThreadWriter
  readonly #processor = new StreamProcessor({ moreSteps: fullSteps })
  readonly #diff: BranchDiff
  readonly #lost = new AbortController()
  readonly #renewal: ReturnType<typeof setInterval>
  #saving: Promise<void> = Promise.resolve()
  #usage: readonly TokenUsage[] | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #closed: Promise<void> | undefined

  constructor(
    settings: AgentSettings,
    writer: ThreadWriter,
    leaseMs: number,
    stored: readonly StoredMessage[],
    messages: readonly Message[],
  ) {
    this.#settings = settings
    this.#writer = writer
    this.#processor.dispatch({ type: 'MESSAGES_SNAPSHOT', messages: [...messages] })
    this.#diff = new BranchDiff(stored, this.#processor.getSnapshot().messages)
    this.#renewal = setInterval(() => this.#renew(leaseMs), leaseMs / 3)
  }

  get lost(): AbortSignal {
    return this.#lost.signal
  }

  async take(event: AGUIEvent): Promise<void> {
    if (event.type === 'RUN_FINISHED' || event.type === 'RUN_ERROR') this.#usage = event.usage
    this.#processor.dispatch(event)
    if (event.type === 'TOOL_CALL_END' || event.type === 'TOOL_CALL_RESULT') return this.#save()
    this.#timer ??= setTimeout(() => void this.#save(), SAVE_EVERY)
  }

  close(): Promise<void> {
    this.#closed ??= this.#end()
    return this.#closed
  }

  async #end(): Promise<void> {
    await this.#save(true)
    clearInterval(this.#renewal)
    clearTimeout(this.#timer)
    if (!this.lost.aborted) return
    await this.#writer
      .release()
      .catch((error: unknown) => this.#settings.warn('A thread was not released.', error))
    throw this.lost.reason
  }

  /** Saves one after the other. A failure stops the run: nothing may happen that is not stored. */
  #save(release = false): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#saving = this.#saving
      .then(() => this.#store(release))
      .catch((error: unknown) => this.#lost.abort(error))
    return this.#saving
  }

  async #store(release: boolean): Promise<void> {
    if (this.lost.aborted) return
    const change = this.#diff.next(this.#processor.getSnapshot().messages)
    if (change === undefined && !release) return
    const { messages, head } = change ?? {}
    const usage = this.#usage && { runId: this.#writer.run.runId, usage: this.#usage }
    if (change === undefined && usage === undefined) return this.#writer.release()
    await this.#writer.append({ messages, head, usage, release })
    change?.commit()
  }

  #renew(leaseMs: number): void {
    this.#writer.renew(leaseMs).catch((error: unknown) => {
      // A store that can't be reached now may be back before the lease ends.
      if (isTakenOver(error)) this.#lost.abort(error)
      else this.#settings.warn('The lease of a thread could not be renewed.', error)
    })
  }
}

function isTakenOver(error: unknown): boolean {
  return error instanceof CountersignError && error.code === 'thread-busy'
}

/**
 * A client that leaves its history to the server names the last user message that was replied to (`serverHistory` of the client).
 *
 * @throws CountersignError `thread-unknown`
 */
function checkKnown(forwardedProps: unknown, history: readonly Message[]): void {
  const own = isRecord(forwardedProps) ? forwardedProps.countersign : undefined
  const after = isRecord(own) ? own.after : undefined
  if (typeof after !== 'string' || history.some(({ id }) => id === after)) return
  throw new CountersignError(
    'thread-unknown',
    'The server does not have the conversation that this request continues. Nothing was stored.',
    { status: 404 },
  )
}

/** @throws CountersignError `thread-busy`, `thread-full` */
function checkHeld(result: HoldResult): void {
  if (result.status === 'full') throw threadFull(result.limit)
  if (result.status === 'busy')
    throw new CountersignError(
      'thread-busy',
      'Another run is open on this thread. Wait for its end, or rejoin it.',
      { status: 409, runId: result.runId },
    )
}

function takenOver(): CountersignError {
  return new CountersignError(
    'thread-busy',
    'Another run has taken this thread over. Load the thread again.',
    {
      status: 409,
    },
  )
}

function threadFull(limit: string): CountersignError {
  return new CountersignError('thread-full', `The thread has no room (${limit}): start a new one.`, {
    status: 413,
    limit,
  })
}
