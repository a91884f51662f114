'use client'

import { approvalQueue } from '@countersign/client'
import { useChatClient } from '@countersign/react'
import { useEffect, useRef, useSyncExternalStore } from 'react'
import { ApprovalCard } from './approval-card'

interface ApprovalDialogProps {
  open: boolean
  onClose: () => void
}

/** The open requests, one at a time, in the order in which they were asked. It closes when none is left. */
export function ApprovalDialog({ open, onClose }: ApprovalDialogProps) {
  const queue = approvalQueue(useChatClient())
  const { current, position, count } = useSyncExternalStore(
    queue.subscribe,
    queue.getSnapshot,
    queue.getServerSnapshot,
  )
  const dialog = useRef<HTMLDialogElement>(null)
  const isShown = open && current !== undefined
  useEffect(() => {
    if (isShown) dialog.current?.showModal()
    else dialog.current?.close()
  }, [isShown])
  return (
    <dialog ref={dialog} aria-label="Approval requests" onClose={onClose}>
      {isShown && (
        <>
          <p>
            {position} of {count}
          </p>
          <ApprovalCard key={current.approval.id} call={current} />
          <button type="button" onClick={() => queue.dismiss()}>
            Later
          </button>
        </>
      )}
    </dialog>
  )
}
