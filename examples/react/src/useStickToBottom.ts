import { type FollowedEnd, followEnd } from '@countersign/example-page/follow-end'
import { type RefObject, useCallback, useEffect, useRef, useState } from 'react'

/** Follows the end of a scroller while it grows. Inactive, it leaves the scroller alone. */
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
    followed.current = followEnd(scroller.current, setIsAtBottom)
    return () => followed.current?.stop()
  }, [isActive])

  return { scroller, isAtBottom, toBottom: useCallback(() => followed.current?.toBottom(), []) }
}
