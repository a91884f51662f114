import type { ChatClient } from '../client.js'

const NEAR = 80

/** Keeps a scroll container at its end. */
export interface FollowedEnd {
  toBottom(): void
  stop(): void
}

/**
 * Keeps a scroll container at its end while it grows, unless the user has scrolled away. A message that is sent in this window brings it
 * back to its end. Calls `onChange` with whether it is at the end, each time that may have changed.
 */
export function followEnd(
  element: HTMLElement,
  client: Pick<ChatClient, 'getSnapshot' | 'subscribe'>,
  onChange: (isAtBottom: boolean) => void,
): FollowedEnd {
  const sentLast = () => client.getSnapshot().messages.findLast(({ role }) => role === 'user')?.id
  let sticks = true
  /** The last known scroll position. */
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
  // A scroll event arrives one frame late. If the user scrolled up in this frame, do not pull them back down.
  const follow = () => {
    if (sticks && element.scrollTop >= seenAt) toBottom()
    else onScroll()
  }
  let sent = sentLast()
  const leave = client.subscribe(() => {
    const now = sentLast()
    if (now === sent) return
    sent = now
    if (!document.hasFocus()) return
    // its element comes next
    sticks = true
    seenAt = element.scrollTop
  })
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
      leave()
      growth.disconnect()
      size.disconnect()
    },
  }
}
