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
  const toBottom = () => {
    element.scrollTop = element.scrollHeight
  }
  const onScroll = () => {
    sticks = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR
    onChange(sticks)
  }
  const follow = () => {
    if (sticks) toBottom()
    else onScroll()
  }
  const growth = new MutationObserver(follow)
  const size = new ResizeObserver(follow)
  element.addEventListener('scroll', onScroll, { passive: true })
  growth.observe(element, { childList: true, subtree: true, characterData: true })
  size.observe(element)
  return {
    toBottom,
    stop() {
      element.removeEventListener('scroll', onScroll)
      growth.disconnect()
      size.disconnect()
    },
  }
}
