import { useChatClient, useChatSelector, usePendingApprovals } from '@countersign/react'
import { useEffect, useRef, useState } from 'react'
import { announcement, type Heard } from './announce.js'

/** The live region: says what is new in whole sentences. */
export function Announcer() {
  const [said, setSaid] = useState('')
  const { getSnapshot } = useChatClient()
  const isLoading = useChatSelector((chat) => chat.isLoading)
  const pending = usePendingApprovals()
  const before = useRef<Heard>({ isLoading: false, pending: [], last: undefined })
  useEffect(() => {
    const now: Heard = { isLoading, pending, last: getSnapshot().messages.at(-1) }
    const text = announcement(before.current, now)
    before.current = now
    if (text !== undefined) setSaid(text)
  }, [isLoading, pending, getSnapshot])
  return (
    <div className="visually-hidden" role="status" aria-live="polite">
      {said}
    </div>
  )
}
