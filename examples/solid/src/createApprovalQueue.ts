import type { ApprovalQueueSnapshot } from '@countersign/client'
import { queue } from '@countersign/example-page/dialog'
import { type Accessor, from } from 'solid-js'

/** The requests, one at a time. */
export function createApprovalQueue(): Accessor<ApprovalQueueSnapshot> {
  return from((set) => queue.subscribe(() => set(queue.getSnapshot())), queue.getSnapshot())
}
