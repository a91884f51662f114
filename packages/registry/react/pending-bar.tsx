'use client'

import { denyAll, type EditSettings, focusCard, nextRequest, pendingWords } from '@countersign/client/ui'
import { useChatClient, usePendingApprovals } from '@countersign/react'
import { useState } from 'react'
import { ApprovalDialog } from './approval-dialog'
import { useApprovalQueue } from './use-approval-queue'

/** The number of pending requests, with buttons to jump to each, to go through them one by one, and to deny all. */
export function PendingBar({ edits }: { edits?: EditSettings | undefined }) {
  const [isOpen, setIsOpen] = useState(false)
  const [late, setLate] = useState<string>()
  const open = () => {
    setLate(undefined)
    setIsOpen(true)
  }
  return (
    <>
      <Bar onOneByOne={open} />
      {isOpen ? (
        <ApprovalDialog edits={edits} late={late} onLate={setLate} onClose={() => setIsOpen(false)} />
      ) : (
        late !== undefined && (
          <p className="tool-late" role="status">
            {late}
          </p>
        )
      )}
    </>
  )
}

function Bar({ onOneByOne }: { onOneByOne: () => void }) {
  const client = useChatClient()
  const pending = usePendingApprovals()
  const { dismissed } = useApprovalQueue()
  if (pending.length === 0) return null
  return (
    <div className="pending-bar">
      <p className="pending-count">{pendingWords(pending.length, dismissed.length)}</p>
      <button
        type="button"
        className="button"
        // Keeps the focus in its card, which is where "next" counts from.
        onMouseDown={(event) => event.preventDefault()}
        onClick={() => {
          const next = nextRequest(pending)
          if (next) focusCard(next)
        }}
      >
        {pending.length === 1 ? 'Show it' : 'Show next'}
      </button>
      {pending.length > 1 && (
        <button type="button" className="button deny" onClick={() => denyAll(client)}>
          Deny all
        </button>
      )}
      <button type="button" className="button" onClick={onOneByOne}>
        One by one…
      </button>
    </div>
  )
}
