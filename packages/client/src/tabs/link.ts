import type { AGUIEvent, CountersignError, LocalEvent, MirrorState } from '@countersign/core'

/** How several tabs show one conversation: `tabs()` of `@countersign/client/tabs`. */
export interface Tabs {
  /** Takes a place among the tabs of a thread; `undefined` where the platform cannot, and each tab is for itself. */
  join(host: TabHost): TabLink | undefined
}

/** One client among the tabs of its thread. One of them leads: it alone runs streams and saves. */
export interface TabLink {
  /** Resolves when it is known who leads, and what there is to show is here. Never rejects. */
  readonly ready: Promise<void>
  readonly leads: boolean
  /** Has the leading tab perform a command; resolves to its result, or to an error where that tab does not begin it in time. Never rejects. */
  forward(name: string, value: unknown): Promise<unknown>
  /** A step is taken here; the other tabs take it too. */
  stepped(step: AGUIEvent | LocalEvent): void
  leave(): void
}

/** What a link needs of its client. */
export interface TabHost {
  readonly threadId: string
  /** Everything there is, for a tab that comes late. */
  capture(): MirrorState
  /** Shows another tab's state instead of its own. */
  mirror(state: MirrorState): void
  /** Takes the steps that the leading tab took. */
  follow(steps: readonly (AGUIEvent | LocalEvent)[]): void
  /** Performs a command that a person made in another tab. */
  perform(name: string, value: unknown): Promise<unknown>
  /** No other tab has shown this one what there is: it loads what is stored. */
  load(): Promise<void>
  /** The tab that led is gone, with whatever it had under way: this one leads now. */
  takeOver(error: CountersignError): void
  failed(error: CountersignError): void
}
