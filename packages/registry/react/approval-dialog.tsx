'use client'

import { DIALOG_TITLE_ID, showOneByOne } from '@countersign/client/ui'
import { useChatClient } from '@countersign/react'
import { useEffect, useEffectEvent, useRef } from 'react'
import { DialogRequest } from './dialog-request'
import { useApprovalQueue } from './use-approval-queue'

interface ApprovalDialogProps {
  /** What happened to an answer that came too late. */
  late: string | undefined
  onLate: (told: string | undefined) => void
  onClose: () => void
}

/** The requests one by one, in a modal dialog. It closes when none is left to show; closing answers nothing. */
export function ApprovalDialog({ late, onLate, onClose }: ApprovalDialogProps) {
  const client = useChatClient()
  const dialog = useRef<HTMLDialogElement>(null)
  const { current, count, position } = useApprovalQueue()
  const onClosed = useEffectEvent(onClose)
  useEffect(
    () => (dialog.current ? showOneByOne(client, dialog.current, () => onClosed()) : undefined),
    [client],
  )
  return (
    <dialog className="approval-dialog" aria-labelledby={DIALOG_TITLE_ID} ref={dialog}>
      {current && (
        <DialogRequest
          key={current.approval.id}
          part={current}
          place={count > 1 ? `${position} of ${count}` : undefined}
          onLate={onLate}
        />
      )}
      {late !== undefined && (
        <p className="tool-late" role="status">
          {late}
        </p>
      )}
    </dialog>
  )
}
