import { type ApprovalQueueSnapshot, approvalQueue } from '@countersign/client'
import { useChatClient } from '@countersign/react'
import { useSyncExternalStore } from 'react'

/** The approval requests, one at a time. */
export function useApprovalQueue(): ApprovalQueueSnapshot {
  const queue = approvalQueue(useChatClient())
  return useSyncExternalStore(queue.subscribe, queue.getSnapshot, queue.getServerSnapshot)
}
