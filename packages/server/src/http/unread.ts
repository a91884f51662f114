import type { FullLimits } from '../limits.js'
import type { LoggedEvent } from '../run-log/run-log.js'
import { jsonSize } from '../scope/channel.js'
import { type Held, type QuotaOwner, takeReply } from './quota.js'

/** Bytes of a batch that counts in its reader's share. */
const LONG_BATCH = 128 * 1024

export function batchSize(batch: readonly LoggedEvent[]): number {
  return batch.reduce((sum, { data }) => sum + jsonSize(data), 0)
}

/** The batch that a reader was given last. A stalled reader never takes it, so a long one counts in its owner's share of replies. */
export class UnreadBatch {
  #held: Held | undefined
  #left = false

  constructor(
    private readonly owner: QuotaOwner,
    private readonly limits: FullLimits,
  ) {}

  /**
   * Counts a batch in place of the one before.
   *
   * @throws CountersignError `too-many-runs` if there is no room for it.
   */
  count(batch: readonly LoggedEvent[]): void {
    this.release()
    // It has left while this batch was on its way.
    if (this.#left) return
    const size = batchSize(batch)
    if (size > LONG_BATCH) this.#held = takeReply(this.owner, size, this.limits)
  }

  release(): void {
    this.#held?.release()
    this.#held = undefined
  }

  /** The reader has gone: nothing counts from now on. */
  leave(): void {
    this.#left = true
    this.release()
  }
}
