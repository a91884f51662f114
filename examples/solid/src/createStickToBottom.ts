import { type FollowedEnd, followEnd } from '@countersign/example-page/follow-end'
import { type Accessor, createEffect, createSignal, onCleanup } from 'solid-js'

/** Follows the end of a scroller while it grows, as long as there is one. */
export function createStickToBottom(scroller: Accessor<HTMLElement | undefined>): {
  isAtBottom: Accessor<boolean>
  toBottom: () => void
} {
  const [isAtBottom, setIsAtBottom] = createSignal(true)
  let followed: FollowedEnd | undefined
  createEffect(() => {
    const element = scroller()
    if (!element) return
    const follows = followEnd(element, setIsAtBottom)
    followed = follows
    onCleanup(() => {
      follows.stop()
      setIsAtBottom(true)
    })
  })
  return { isAtBottom, toBottom: () => followed?.toBottom() }
}
