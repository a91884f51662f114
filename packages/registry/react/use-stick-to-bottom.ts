import { type FollowedEnd, followEnd } from '@countersign/client/ui'
import { type RefObject, useCallback, useEffect, useRef, useState } from 'react'

/** Keeps a growing scroller scrolled to its end. Does nothing while inactive. */
export function useStickToBottom(isActive: boolean): {
  scroller: RefObject<HTMLElement | null>
  isAtBottom: boolean
  toBottom: () => void
} {
  const scroller = useRef<HTMLElement>(null)
  const followed = useRef<FollowedEnd>(undefined)
  const [isAtBottom, setIsAtBottom] = useState(true)

  useEffect(() => {
    if (!scroller.current || !isActive) return
    const follows = followEnd(scroller.current, setIsAtBottom)
    followed.current = follows
    return () => {
      follows.stop()
      setIsAtBottom(true)
    }
  }, [isActive])

  return { scroller, isAtBottom, toBottom: useCallback(() => followed.current?.toBottom(), []) }
}
