import type { ApprovalQueueSnapshot } from '@countersign/client'
import { queue } from '@countersign/example-page/dialog'
import { onScopeDispose, type ShallowRef, shallowRef } from 'vue'

/** The requests, one at a time. */
export function useApprovalQueue(): Readonly<ShallowRef<ApprovalQueueSnapshot>> {
  const snapshot = shallowRef(queue.getSnapshot())
  onScopeDispose(
    queue.subscribe(() => {
      snapshot.value = queue.getSnapshot()
    }),
  )
  return snapshot
}
