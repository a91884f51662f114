import type {
  AGUIEvent,
  ChatState,
  ChatStore,
  CountersignError,
  LocalEvent,
  MoreSteps,
  ThreadRecord,
  UIMessage,
} from '@countersign/core'
import type { Compat, Connection, RunCursor } from '../connections/connection.js'
import type { Tabs } from '../tabs/link.js'

/**
 * Stores conversations beyond a page. Implementations have separate entry points (`@countersign/client/web-storage`,
 * `@countersign/client/indexed-db`); pass any object of this shape to `persistent` of `@countersign/client/persistence`.
 */
export interface Persistence {
  /** The record of a thread, or `undefined` if there is none. Rejects if it cannot be read. */
  load(threadId: string): Promise<ThreadRecord | undefined>
  /** Replaces the record. If it rejects, the earlier record must still be there. */
  save(threadId: string, record: ThreadRecord): Promise<void>
  remove(threadId: string): Promise<void>
  /**
   * Replaces the record by what `change` makes of it; `undefined` stands for no record. In one step: pages of one browser that share a
   * record do not overwrite each other's. Default: `load`, then `save` or `remove`.
   */
  update?(threadId: string, change: ChangeRecord): Promise<void>
}

export type ChangeRecord = (stored: ThreadRecord | undefined) => ThreadRecord | undefined

/** A storage inside the client. */
export interface ThreadStorage extends Pick<Persistence, 'load' | 'save'> {
  /** `save` adds to what is stored: it may save also what was not loaded before. */
  readonly merges?: boolean
  /** Called when the record that was loaded last has been taken over. */
  restored?(): void
}

/** How often a client saves, and how long it waits, in milliseconds. */
export interface Limits {
  readonly saveEvery: number
  readonly timeout: number
}

/** How often a client uses a {@link Persistence}, and how long it waits for it. */
export interface PersistentOptions {
  /** Minimum milliseconds between saves while texts grow; a reload loses at most that much. Default 2,000. */
  saveEvery?: number | undefined
  /**
   * How many milliseconds a `load` or `save` may take before the chat continues without it; `onError` then gets
   * `persistence-unavailable`. After such a load the conversation is not saved, so that the stored one is not
   * overwritten; after such a save the next one starts once it has settled. Default 10,000; `Infinity` waits forever.
   */
  timeout?: number | undefined
}

/** A {@link Persistence} ready for a client: the result of `webStorage()`, `indexedDb()` and `persistent(...)`. */
export interface Persistent extends Persistence {
  /** The machine's steps that it needs. For the client only, like `open`. */
  readonly steps: MoreSteps
  /** Whether a client may have no `threadId`: its conversation is a new one, which the application finds in a list. */
  readonly startsThreads?: boolean
  /** Creates the stored thread of one client. Has no effect yet. */
  open(session: KeptSession, host: ThreadHost): KeptThread
}

/** A conversation that was loaded on the server, as `loadThread` of `@countersign/server` returns it. */
export interface InitialThread {
  readonly version: number
  readonly createdAt: number
  readonly head: string | null
  readonly messages: readonly UIMessage[]
  readonly run?: LoadedRun | undefined
}

/** The run that was open on a conversation when it was loaded. */
interface LoadedRun {
  readonly runId: string
  readonly lapsed: boolean
  readonly messageIds: readonly string[]
  readonly isVersion?: boolean | undefined
}

/** One client's stored conversation: whether it is loaded, and which tab may change it. */
export interface KeptThread {
  /** Performs a command: at once, after the conversation is loaded, or in the leading tab. */
  perform(name: string, value: unknown, here: () => unknown): unknown
  /** Loads the conversation, once. Never rejects. */
  enter(): Promise<unknown>
  /** Saves the current state. Resolves to whether it succeeded. */
  keep(): Promise<boolean>
  /** The conversation is replaced, so the stored one is not needed. */
  replace(): void
  /**
   * Whether `retry()` may go on here: a conversation that could not be loaded is loaded first, and another page of this browser may run
   * the client tools that an earlier run left. Reports what is in the way. `undefined`, the default: yes.
   */
  mayStart?(): Promise<boolean> | undefined
  /** Whether a call was not made by a run of this page: only `retry()` may run it here. Default: no. */
  isElsewhere?(toolCallId: string): boolean
  /** Releases every timer, channel and lock if there is no page, no run and no pending command. */
  leaveIfUnused(): void
}

export type Step = AGUIEvent | LocalEvent

/** The conversation that is stored. */
export interface KeptSession {
  readonly threadId: string
  readonly state: ChatState
  readonly store: Pick<ChatStore, 'subscribe'>
  readonly options: {
    readonly connection: Connection
    readonly compat?: Compat | undefined
    readonly threadId?: string | undefined
    readonly tabs?: Tabs | undefined
    readonly initialThread?: InitialThread | undefined
  }
  readonly dispatch: (event: LocalEvent) => void
  newId(): string
  /** Called for every step taken here, before it is applied. */
  onStep: ((step: Step) => void) | undefined
  /** Applies steps that were taken in another tab. */
  follow(steps: readonly Step[]): void
  failed(error: CountersignError): void
  warn(message: string): void
  readonly headers: Readonly<Record<string, string>>
}

/** A run that may be open on the server. `isForeign`: another client opened it, and runs its client tools. */
interface OpenRun {
  readonly cursor: RunCursor
  /** Default: the client's. */
  readonly connection?: Connection
  /** Where what it wrote begins. */
  readonly from?: ThreadRecord['from']
  readonly isForeign?: boolean
}

/** What a stored thread needs from its client. */
export interface ThreadHost {
  /** Whether no page shows it and nothing runs; `underWay` is the number of pending commands. */
  isUnused(underWay: number): boolean
  /** Performs a command from another tab. */
  perform(name: string, value: unknown): Promise<unknown>
  /** The tab that ran the streams is gone: its run is broken, and its running tools may or may not have finished. */
  takeOver(error: CountersignError): void
  /**
   * Reads a run that is open on the server from its first event, unless a run is open here. Resolves with whether there was such a run.
   */
  rejoin(run: OpenRun): Promise<boolean>
  /** Sends the next queued message, unless a run is open or the user stopped the chat. */
  sendQueued(): void
}
