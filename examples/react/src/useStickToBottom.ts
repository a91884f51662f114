import { type RefObject, useCallback, useEffect, useRef, useState } from 'react'

const NEAR = 80

/** Follows the end of a scroller while it grows, unless the person has scrolled away from it. Inactive, it leaves the scroller alone. */
export function useStickToBottom(isActive: boolean): {
  scroller: RefObject<HTMLElement | null>
  isAtBottom: boolean
  toBottom: () => void
} {
  const scroller = useRef<HTMLElement>(null)
  const sticks = useRef(true)
  const [isAtBottom, setIsAtBottom] = useState(true)

  const toBottom = useCallback(() => {
    const element = scroller.current
    if (element) element.scrollTop = element.scrollHeight
  }, [])

  useEffect(() => {
    const element = scroller.current
    if (!element || !isActive) return
    const onScroll = () => {
      sticks.current = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR
      setIsAtBottom(sticks.current)
    }
    const follow = () => {
      if (sticks.current) toBottom()
      else onScroll()
    }
    const growth = new MutationObserver(follow)
    const size = new ResizeObserver(follow)
    element.addEventListener('scroll', onScroll, { passive: true })
    growth.observe(element, { childList: true, subtree: true, characterData: true })
    size.observe(element)
    return () => {
      element.removeEventListener('scroll', onScroll)
      growth.disconnect()
      size.disconnect()
    }
  }, [toBottom, isActive])

  return { scroller, isAtBottom, toBottom }
}
