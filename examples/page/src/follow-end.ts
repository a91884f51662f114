const NEAR = 80

/** A scroller that is followed to its end. */
export interface FollowedEnd {
  toBottom(): void
  stop(): void
}

/**
 * Follows the end of a scroller while it grows, unless the person has scrolled away from it. `onChange` is told whether it follows, each
 * time that may have changed.
 */
export function followEnd(element: HTMLElement, onChange: (isAtBottom: boolean) => void): FollowedEnd {
  let sticks = true
  /** How far down it was last seen. */
  let seenAt = 0
  const toBottom = () => {
    element.scrollTop = element.scrollHeight
    seenAt = element.scrollTop
  }
  const onScroll = () => {
    seenAt = element.scrollTop
    sticks = element.scrollHeight - seenAt - element.clientHeight < NEAR
    onChange(sticks)
  }
  // Whoever has scrolled up in this frame is heard of with the next one, and is not to be brought back before.
  const follow = () => {
    if (sticks && element.scrollTop >= seenAt) toBottom()
    else onScroll()
  }
  const growth = new MutationObserver(follow)
  const size = new ResizeObserver(follow)
  element.addEventListener('scroll', onScroll, { passive: true })
  growth.observe(element, { childList: true, subtree: true, characterData: true })
  size.observe(element)
  toBottom()
  return {
    toBottom,
    stop() {
      element.removeEventListener('scroll', onScroll)
      growth.disconnect()
      size.disconnect()
    },
  }
}
