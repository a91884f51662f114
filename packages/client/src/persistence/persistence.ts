import type { ThreadRecord } from '@countersign/core'

/**
 * Where conversations outlive a page. Implementations come from entries of their own (`@countersign/client/web-storage`,
 * `@countersign/client/indexed-db`); any object of this form will do.
 */
export interface Persistence {
  /** The record of a thread, or `undefined` where there is none. Rejects where it cannot be read. */
  load(threadId: string): Promise<ThreadRecord | undefined>
  /** Replaces the record. Rejects where it cannot be kept, and then the earlier record still stands. */
  save(threadId: string, record: ThreadRecord): Promise<void>
  remove(threadId: string): Promise<void>
}
