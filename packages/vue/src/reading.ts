import type { ChatClient } from '@countersign/client'
import {
  type ComputedRef,
  computed,
  customRef,
  getCurrentInstance,
  inject,
  nextTick,
  onMounted,
  onScopeDispose,
  ReactiveEffect,
  type Ref,
  shallowRef,
  ssrContextKey,
  watch,
} from 'vue'

/** A client, how to subscribe, how to read, and how to read for server rendering and hydration. */
export type Reading<T> = readonly [
  client: Pick<ChatClient, 'attach'>,
  subscribe: (listener: () => void) => () => void,
  get: () => T,
  getServer: () => T,
]

/** A value of a client, which is attached while the value is shown. Dependents do not update while the value is the same. */
export function useReading<T>(reading: () => Reading<T>): ComputedRef<T> {
  const source = computed(reading)
  // Holds no value: reading it tracks, writing it triggers. A counter would not do: changes may be caused
  // inside an effect, and incrementing it there would make the effect depend on it.
  const changes = customRef<void>((get, set) => ({ get, set }))
  const change = () => {
    changes.value = undefined
  }
  let last: T | undefined
  /** Whether `last` was read after the last notification. */
  let isRead = false
  let readsBeginning = setUp() === 'served'
  whileShown(source, ([client, subscribe, get]) => {
    const detach = client.attach()
    readsBeginning = false
    // The value may have changed since the first read.
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
    last = readsBeginning ? getServer() : get()
    isRead = true
    return last
  })
}

/** Reads without making the surrounding effect depend on it. */
export function untracked<T>(read: () => T): T {
  const effect = new ReactiveEffect(read)
  try {
    return effect.run()
  } finally {
    effect.stop()
  }
}

/**
 * Calls `begin` for each value of `source`. Its cleanup runs after the next `begin`, or when the scope ends, so that what
 * both need is never released in between. In a component it starts on mount, so never on a server; elsewhere at once.
 */
export function whileShown<T>(source: Ref<T>, begin: (value: T) => () => void): void {
  const component = setUp()
  const shown = shallowRef(!component)
  const show = () => {
    shown.value = true
  }
  if (component) onMounted(show)
  // A component that is never mounted, because the user leaves while it waits, may have created a store that stays.
  if (component === 'new') void nextTick(show)
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

/** What is being set up: a component that a server renders or that hydrates (it has its element before it is mounted), or a new one. */
function setUp(): 'served' | 'new' | undefined {
  const instance = getCurrentInstance()
  if (!instance || instance.isMounted) return undefined
  return (instance.vnode.el ?? inject(ssrContextKey, undefined)) == null ? 'new' : 'served'
}
