import type { FullLimits } from '../limits.js'
import type { LoggedEvent } from '../run-log/run-log.js'
import { jsonSize } from '../scope/channel.js'
import { type Held, type QuotaOwner, takeReply } from './quota.js'

/** Bytes of a batch that counts in its reader's share. */
const LONG_BATCH = 128 * 1024

export function batchSize(batch: readonly LoggedEvent[]): number {
  return batch.reduce((sum, { data }) => sum + jsonSize(data), 0)
}

/**
 * The events of a run for one reader, who calls `return` once the last batch has been sent, and `leave` is called. A stalled reader never takes
 * the batch that it was given last, so a long one counts in its owner's share of replies until it asks for the next: without room for
 * it, reading fails with `too-many-runs`.
 */
export function readBatches(
  events: AsyncIterator<readonly LoggedEvent[]>,
  owner: QuotaOwner,
  limits: FullLimits,
  leave: () => Promise<void> | void,
): AsyncIterableIterator<readonly LoggedEvent[]> {
  let held: Held | undefined
  let hasLeft = false
  const reading: AsyncIterableIterator<readonly LoggedEvent[]> = {
    async next() {
      held?.release()
      const next = await events.next()
      const size = next.done ? 0 : batchSize(next.value)
      // It may have left while this batch was on its way.
      if (hasLeft || size <= LONG_BATCH) return next
      try {
        held = takeReply(owner, size, limits)
      } catch (error) {
        await reading.return?.()
        throw error
      }
      return next
    },
    async return() {
      hasLeft = true
      held?.release()
      await leave()
      return { done: true, value: undefined }
    },
    [Symbol.asyncIterator]: () => reading,
  }
  return reading
}
