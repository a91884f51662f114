'use client'

import { approvalQueue } from '@countersign/client'
import { useChatClient } from '@countersign/react'
import { useSyncExternalStore } from 'react'

/** How many requests wait for the user, and a button that shows them. A screen reader announces it. */
export function PendingBar({ onOpen }: { onOpen: () => void }) {
  const queue = approvalQueue(useChatClient())
  const { count } = useSyncExternalStore(queue.subscribe, queue.getSnapshot, queue.getServerSnapshot)
  const open = () => {
    queue.reopen()
    onOpen()
  }
  return (
    <div role="status">
      {count > 0 && (
        <>
          {count === 1 ? 'One request is' : `${count} requests are`} waiting for you{' '}
          <button type="button" onClick={open}>
            One by one…
          </button>
        </>
      )}
    </div>
  )
}
