import type {
  AGUIEvent,
  ChatState,
  ChatStore,
  CountersignError,
  LocalEvent,
  MoreSteps,
  ThreadRecord,
} from '@countersign/core'
import type { Tabs } from '../tabs/link.js'

/**
 * Where conversations outlive a page. Implementations come from entries of their own (`@countersign/client/web-storage`,
 * `@countersign/client/indexed-db`); any object of this form will do, in `persistent` of `@countersign/client/persistence`.
 */
export interface Persistence {
  /** The record of a thread, or `undefined` where there is none. Rejects where it cannot be read. */
  load(threadId: string): Promise<ThreadRecord | undefined>
  /** Replaces the record. Rejects where it cannot be kept, and then the earlier record still stands. */
  save(threadId: string, record: ThreadRecord): Promise<void>
  remove(threadId: string): Promise<void>
}

/** How often a client saves, and how long it waits, in milliseconds. */
export interface Limits {
  readonly saveEvery: number
  readonly timeout: number
}

/** How patient a client is with a {@link Persistence}. */
export interface PersistentOptions {
  /** While texts grow the record is saved no more often than this, in milliseconds. A reload in between loses that much. Default 2,000. */
  saveEvery?: number | undefined
  /**
   * How long a `load` or `save` may take, in milliseconds, before the chat goes on without it; `onError` hears `persistence-unavailable`.
   * After such a load the conversation is not saved, so that what is stored is not overwritten; after such a save the next is tried once it has settled.
   * Default 10,000; `Infinity` waits for ever.
   */
  timeout?: number | undefined
}

/** A {@link Persistence} with what a client needs to use it: what `webStorage()`, `indexedDb()` and `persistent(...)` give. */
export interface Persistent extends Persistence {
  /** The steps of the machine that it takes. Like `open` it is for the client alone. */
  readonly steps: MoreSteps
  /** Makes what keeps the thread of one client. Does nothing yet. */
  open(session: KeptSession, host: ThreadHost): KeptThread
}

/** One client's conversation in the place where it is kept: whether it is here, and whose it is to change. */
export interface KeptThread {
  /** Carries out a command: now, or once the conversation is here, or in the tab that leads. */
  perform(name: string, value: unknown, here: () => unknown): unknown
  /** Brings the conversation here, the first time it is asked. Never rejects. */
  enter(): Promise<unknown>
  /** Saves it as it is now. Resolves to whether it could be saved. */
  keep(): Promise<boolean>
  /** The conversation is replaced: what is stored is not wanted any more. */
  replace(): void
  /** With no page, no run and no command under way, nothing is held: no timer, no channel, no lock. */
  leaveIfUnused(): void
}

type Step = AGUIEvent | LocalEvent

/** The conversation that is kept. */
export interface KeptSession {
  readonly threadId: string
  readonly state: ChatState
  readonly store: Pick<ChatStore, 'subscribe'>
  readonly options: { readonly tabs?: Tabs | undefined }
  readonly dispatch: (event: LocalEvent) => void
  /** Hears of every step taken here, before it is taken. */
  onStep: ((step: Step) => void) | undefined
  /** Takes steps that were taken elsewhere. */
  follow(steps: readonly Step[]): void
  failed(error: CountersignError): void
}

/** What a kept thread needs of its client. */
export interface ThreadHost {
  /** Whether no page shows it and nothing runs; `underWay` commands are not over. */
  isUnused(underWay: number): boolean
  /** Performs a command that a person made in another tab. */
  perform(name: string, value: unknown): Promise<unknown>
  /** The tab that ran the streams is gone: its run is broken, its tools at work may or may not have run. */
  takeOver(error: CountersignError): void
}
