import { type FollowedEnd, followEnd } from '@countersign/client/ui'
import { useChatClient } from '@countersign/vue'
import { type MaybeRefOrGetter, type Ref, readonly, ref, toValue, watch } from 'vue'

/** Keeps a growing scroller, if there is one, scrolled to its end. */
export function useStickToBottom(scroller: MaybeRefOrGetter<HTMLElement | null>): {
  isAtBottom: Readonly<Ref<boolean>>
  toBottom: () => void
} {
  const client = useChatClient()
  const isAtBottom = ref(true)
  let followed: FollowedEnd | undefined

  watch(
    () => toValue(scroller),
    (element, _before, onCleanup) => {
      isAtBottom.value = true
      followed =
        element === null
          ? undefined
          : followEnd(element, client.value, (now) => {
              isAtBottom.value = now
            })
      onCleanup(() => followed?.stop())
    },
    { immediate: true, flush: 'post' },
  )

  return { isAtBottom: readonly(isAtBottom), toBottom: () => followed?.toBottom() }
}
