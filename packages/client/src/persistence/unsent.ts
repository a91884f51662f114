import type { ThreadRecord } from '@countersign/core'
import { LeftUnsent } from './left-unsent.js'
import type { ChangeRecord, KeptSession, Persistence } from './persistence.js'
import { isEmpty, nothing, together, unsentOf, within, without } from './server-record.js'

/** What the server has not received yet, stored in this browser. All pages share one record, and each removes only its own entries. */
export class Unsent {
  readonly #local: Persistence
  readonly #session: Pick<KeptSession, 'state' | 'newId' | 'threadId'>
  /** Messages that were never sent and are no longer shown. */
  readonly left: LeftUnsent
  /** The entries that this page took from the record at the last load. */
  #found = nothing
  /** The entries of this page. */
  #own = nothing
  /** Answers to requests of the open run. They are kept until it ends, and shown then. */
  #later = nothing

  constructor(session: Pick<KeptSession, 'state' | 'newId' | 'threadId'>, local: Persistence) {
    this.#session = session
    this.#local = local
    this.left = new LeftUnsent(session)
  }

  get found(): ThreadRecord {
    return this.#found
  }

  get hasLater(): boolean {
    return !isEmpty(this.#later)
  }

  load(): Promise<ThreadRecord | undefined> {
    return this.#local.load(this.#session.threadId)
  }

  /** What this page has stored. */
  get own(): ThreadRecord {
    return this.#own
  }

  /** Whether another page of this browser has sent, changed or left out something of that. `undefined`: there is nothing. */
  hasChanged(): Promise<boolean> | undefined {
    if (isEmpty(this.#own)) return undefined
    return this.load().then(
      (stored = nothing) => !isEmpty(without(this.#own, stored)),
      () => false,
    )
  }

  /** What this page may show: the whole record, or only its own entries while another page is working. */
  take(stored: ThreadRecord | undefined, isAlone: boolean): ThreadRecord | undefined {
    const own = together(this.#later, within(this.#own, stored ?? nothing))
    const taken = isAlone ? stored : isEmpty(own) ? undefined : own
    this.#found = taken ?? nothing
    return taken
  }

  /** Keeps these messages for later. */
  postpone(messages: ThreadRecord['messages']): void {
    this.#later = { ...nothing, messages }
    this.#found = without(this.#found, this.#later)
  }

  /**
   * The entries that were taken are shown now, so they belong to this page, like what it has stored while they were read. `messages`: those
   * of the server, which are shown before them.
   */
  shown(messages: readonly { readonly id: string; readonly role: string }[]): void {
    this.#own = together(this.#own, this.#found)
    this.left.loaded(messages)
  }

  async save(record: ThreadRecord): Promise<void> {
    const shown = this.left.with(unsentOf(record))
    await update(this.#local, this.#session.threadId, (stored = nothing) => {
      // What another page has sent, changed or left out since it was stored here is not stored again.
      const gone = without(this.#own, stored)
      const unsent = together(without(stored, this.#own), without(shown, gone))
      return isEmpty(unsent) ? undefined : unsent
    })
    this.#own = shown
  }
}

async function update(local: Persistence, threadId: string, change: ChangeRecord): Promise<void> {
  if (local.update) return local.update(threadId, change)
  const stored = await local.load(threadId)
  const next = change(stored)
  if (next) await local.save(threadId, next)
  else if (stored) await local.remove(threadId)
}
