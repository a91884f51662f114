import type { ThreadRecord } from '@countersign/core'
import { isCopy } from './copies.js'
import { LeftUnsent } from './left-unsent.js'
import type { ChangeRecord, KeptSession, Persistence } from './persistence.js'
import { isEmpty, nothing, together, unsentOf, without } from './server-record.js'

/** What the server has not received yet, stored in this browser. All pages share one record, and each removes only its own entries. */
export class Unsent {
  readonly #local: Persistence
  readonly #session: Pick<KeptSession, 'state' | 'threadId'>
  /** Messages that were never sent and are no longer shown. */
  readonly left: LeftUnsent
  /** The entries that this page took from the record at the last load. */
  #found = nothing
  /** The entries of this page. */
  #own = nothing
  /** Answers to requests of the open run. They are kept until it ends, and shown then. */
  #later = nothing

  constructor(session: Pick<KeptSession, 'state' | 'threadId'>, local: Persistence) {
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

  /** Whether another page of this browser may have sent a message that is shown here as not sent. `undefined`: none is. */
  mayBeSent(): Promise<boolean> | undefined {
    const ids = this.#own.messages.flatMap(({ id, role }) => (role === 'user' ? id : []))
    if (ids.length === 0) return undefined
    const isLast = (stored: ThreadRecord | undefined, id: string) =>
      !isCopy(id) && stored?.messages.some((message) => message.id === id)
    return this.load().then(
      (stored) => !ids.every((id) => isLast(stored, id)),
      () => false,
    )
  }

  /** What this page may show: the whole record, or only its own entries while another page is working. */
  take(stored: ThreadRecord | undefined, isAlone: boolean): ThreadRecord | undefined {
    const own = together(this.#later, this.#own)
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
    await update(this.#local, this.#session.threadId, (stored) => {
      const unsent = stored ? together(without(stored, this.#own), shown) : shown
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
