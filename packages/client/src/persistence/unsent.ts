import type { ThreadRecord } from '@countersign/core'
import type { LeftUnsent } from './left-unsent.js'
import type { ChangeRecord, Persistence } from './persistence.js'
import { isEmpty, nothing, together, unsentOf, without } from './server-record.js'

/** What the server was not sent, as it is stored in this browser. Its pages share the record, and each removes only what is its own. */
export class Unsent {
  readonly #local: Persistence
  /** What was found in the record last, of which this page shows something. */
  #found = nothing
  /** What of the record is this page's. */
  #own = nothing
  /** Answers to requests of the open run: they can be shown when it has ended, and are kept until then. */
  #later = nothing

  constructor(local: Persistence) {
    this.#local = local
  }

  get found(): ThreadRecord {
    return this.#found
  }

  get hasLater(): boolean {
    return !isEmpty(this.#later)
  }

  load(threadId: string): Promise<ThreadRecord | undefined> {
    return this.#local.load(threadId)
  }

  /** What this page may show: all of the record, or only its own where another page works. */
  take(stored: ThreadRecord | undefined, isAlone: boolean): ThreadRecord | undefined {
    const own = together(this.#later, this.#own)
    const taken = isAlone ? stored : isEmpty(own) ? undefined : own
    this.#found = taken ?? nothing
    return taken
  }

  /** Leaves these messages to be shown later. */
  postpone(messages: ThreadRecord['messages']): void {
    this.#later = { ...nothing, messages }
    this.#found = without(this.#found, this.#later)
  }

  /** What was taken is shown: it is this page's from now on. */
  shown(): void {
    this.#own = this.#found
  }

  /** `left`: what else was never sent, though the page does not show it any more. */
  async save(threadId: string, record: ThreadRecord, left: LeftUnsent): Promise<void> {
    const shown = left.with(unsentOf(record))
    await update(this.#local, threadId, (stored) => {
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
