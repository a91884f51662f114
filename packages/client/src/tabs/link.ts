import type { AGUIEvent, CountersignError, LocalEvent, MirrorState } from '@countersign/core'

/** Shares one conversation between tabs: `tabs()` of `@countersign/client/tabs`. */
export interface Tabs {
  /** Joins the tabs of a thread; `undefined` if the platform cannot, and each tab works alone. */
  join(host: TabHost): TabLink | undefined
}

/** One client among the tabs of its thread. One of them leads: only that one runs streams and saves. */
export interface TabLink {
  /** Resolves when the leader is known and the conversation is here. Never rejects. */
  readonly ready: Promise<void>
  readonly leads: boolean
  /** Asks the leading tab to perform a command. Resolves to its result, or to an error if it was not started in time. Never rejects. */
  forward(name: string, value: unknown): Promise<unknown>
  /** A step is taken here; the other tabs apply it too. */
  stepped(step: AGUIEvent | LocalEvent): void
  leave(): void
}

/** What a link needs from its client. */
export interface TabHost {
  readonly threadId: string
  /** The complete state, for a tab that joins later. */
  capture(): MirrorState
  /** Replaces the state with that of another tab. */
  mirror(state: MirrorState): void
  /** Applies the steps that the leading tab took. */
  follow(steps: readonly (AGUIEvent | LocalEvent)[]): void
  /** Performs a command from another tab. */
  perform(name: string, value: unknown): Promise<unknown>
  /** No other tab has sent its state: loads what is stored. */
  load(): Promise<void>
  /** This tab leads now, with what is loaded: rejoins the run that was open. Resolves once it is known whether there is one. */
  rejoin(): Promise<void>
  /** The leading tab is gone, with its pending work; this one leads now. Rejoins its run likewise. */
  takeOver(error: CountersignError): Promise<void>
  failed(error: CountersignError): void
}
