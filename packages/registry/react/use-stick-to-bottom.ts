import { type FollowedEnd, followEnd } from '@countersign/client/ui'
import { useChatClient } from '@countersign/react'
import { type RefObject, useCallback, useEffect, useRef, useState } from 'react'

/** Keeps a growing scroller scrolled to its end. Does nothing while inactive. */
export function useStickToBottom(isActive: boolean): {
  scroller: RefObject<HTMLElement | null>
  isAtBottom: boolean
  toBottom: () => void
} {
  const client = useChatClient()
  const scroller = useRef<HTMLElement>(null)
  const followed = useRef<FollowedEnd>(undefined)
  const [isAtBottom, setIsAtBottom] = useState(true)

  useEffect(() => {
    if (!scroller.current || !isActive) return
    const follows = followEnd(scroller.current, client, setIsAtBottom)
    followed.current = follows
    return () => {
      follows.stop()
      setIsAtBottom(true)
    }
  }, [isActive, client])

  return { scroller, isAtBottom, toBottom: useCallback(() => followed.current?.toBottom(), []) }
}
