import { type FollowedEnd, followEnd } from '@countersign/client/ui'
import { useChatClient } from '@countersign/solid'
import { type Accessor, createEffect, createSignal, onCleanup } from 'solid-js'

/** Keeps a growing scroller, if there is one, scrolled to its end. */
export function createStickToBottom(scroller: Accessor<HTMLElement | undefined>): {
  isAtBottom: Accessor<boolean>
  toBottom: () => void
} {
  const client = useChatClient()
  const [isAtBottom, setIsAtBottom] = createSignal(true)
  let followed: FollowedEnd | undefined
  createEffect(() => {
    const element = scroller()
    if (!element) return
    const follows = followEnd(element, client(), setIsAtBottom)
    followed = follows
    onCleanup(() => {
      follows.stop()
      setIsAtBottom(true)
    })
  })
  return { isAtBottom, toBottom: () => followed?.toBottom() }
}
