import type { ChatClient } from '@countersign/client'
import {
  type ComponentInternalInstance,
  type ComputedRef,
  computed,
  customRef,
  getCurrentInstance,
  inject,
  onMounted,
  onScopeDispose,
  ReactiveEffect,
  type Ref,
  shallowRef,
  ssrContextKey,
  watch,
} from 'vue'

/** Of which client, how to hear of changes, how to read, and how to read what a server renders and a page hydrates with. */
export type Reading<T> = readonly [
  client: Pick<ChatClient, 'attach'>,
  subscribe: (listener: () => void) => () => void,
  get: () => T,
  getServer: () => T,
]

/** A value of a client, which is attached while it is shown. What depends on the value is left alone while it is the same. */
export function useReading<T>(reading: () => Reading<T>): ComputedRef<T> {
  const source = computed(reading)
  // Holds nothing: reading it is to depend on it, writing it is to tell. Who causes a change may be an effect, which must not come to
  // depend on it, as it would by counting.
  const changes = customRef<void>((get, set) => ({ get, set }))
  const change = () => {
    changes.value = undefined
  }
  let last: T | undefined
  /** Whether `last` was read after what was told last. */
  let isRead = false
  // A component that takes over what a server rendered has its element before it is mounted.
  const instance = setupInstance()
  let isServed = instance && (instance.vnode.el ?? inject(ssrContextKey, undefined)) != null
  whileShown(source, ([client, subscribe, get]) => {
    const detach = client.attach()
    isServed = false
    // Between the first reading and this there may have been a change.
    change()
    const leave = subscribe(() => {
      if (!isRead || Object.is(get(), last)) return
      isRead = false
      change()
    })
    return () => {
      leave()
      detach()
    }
  })
  return computed(() => {
    void changes.value
    const [, , get, getServer] = source.value
    last = isServed ? getServer() : get()
    isRead = true
    return last
  })
}

/** Reads what no effect around is to depend on. */
export function untracked<T>(read: () => T): T {
  const effect = new ReactiveEffect(read)
  try {
    return effect.run()
  } finally {
    effect.stop()
  }
}

/**
 * Does `begin` for each value of `source`, and when the next has begun or the scope ends undoes it: what both need is not left between.
 * In a component from the mount on, so never on a server; else at once.
 */
export function whileShown<T>(source: Ref<T>, begin: (value: T) => () => void): void {
  const shown = shallowRef(!setupInstance())
  if (!shown.value)
    onMounted(() => {
      shown.value = true
    })
  let end = () => {}
  const follow = () => {
    if (!shown.value) return
    const before = end
    end = begin(source.value)
    before()
  }
  watch([source, shown], follow, { immediate: true })
  onScopeDispose(() => end(), true)
}

/** The component that is being set up, if one is. */
function setupInstance(): ComponentInternalInstance | undefined {
  const instance = getCurrentInstance()
  return instance?.isMounted ? undefined : (instance ?? undefined)
}
