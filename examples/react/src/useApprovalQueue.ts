import type { ApprovalQueueSnapshot } from '@countersign/client'
import { queue } from '@countersign/example-page/dialog'
import { useSyncExternalStore } from 'react'

/** The approval requests, one at a time. */
export function useApprovalQueue(): ApprovalQueueSnapshot {
  return useSyncExternalStore(queue.subscribe, queue.getSnapshot)
}
