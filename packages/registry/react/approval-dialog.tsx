'use client'

import { approvalQueue } from '@countersign/client'
import { DIALOG_TITLE_ID, type EditSettings, showOneByOne } from '@countersign/client/ui'
import { useChatClient } from '@countersign/react'
import { useEffect, useEffectEvent, useRef } from 'react'
import { ApprovalCard } from './approval-card'
import { SafeText } from './safe-text'
import { takeFocus } from './take-focus'
import { useApprovalQueue } from './use-approval-queue'

interface ApprovalDialogProps {
  /** Which edits fit, and where they are previewed. Default: both are left to the server. */
  edits?: EditSettings | undefined
  /** What happened to an answer that came too late. */
  late: string | undefined
  onLate: (told: string | undefined) => void
  onClose: () => void
}

/** The requests one by one, in a modal dialog. It closes when none is left to show; closing answers nothing. */
export function ApprovalDialog({ edits, late, onLate, onClose }: ApprovalDialogProps) {
  const client = useChatClient()
  const queue = approvalQueue(client)
  const dialog = useRef<HTMLDialogElement>(null)
  const { current, count, position } = useApprovalQueue()
  const onClosed = useEffectEvent(onClose)
  useEffect(
    () => (dialog.current ? showOneByOne(client, dialog.current, () => onClosed()) : undefined),
    [client],
  )
  const id = current?.approval.id
  return (
    <dialog className="approval-dialog" aria-labelledby={DIALOG_TITLE_ID} ref={dialog}>
      {current && (
        <>
          <header className="dialog-header">
            <h2 className="dialog-title" id={DIALOG_TITLE_ID} tabIndex={-1} key={id} ref={takeFocus}>
              <SafeText text={current.name} />
            </h2>
            {count > 1 && (
              <p className="dialog-count">
                {position} of {count}
              </p>
            )}
          </header>
          <ApprovalCard key={id} part={current} edits={edits} onLate={onLate} />
          <footer className="dialog-footer">
            {count > 1 && (
              <button type="button" className="button dialog-next" onClick={queue.next}>
                Next
              </button>
            )}
            <button type="button" className="button dialog-later" onClick={() => queue.dismiss()}>
              Later
            </button>
          </footer>
        </>
      )}
      {late !== undefined && (
        <p className="tool-late" role="status">
          {late}
        </p>
      )}
    </dialog>
  )
}
