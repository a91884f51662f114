import { type ShallowRef, shallowRef, watch } from 'vue'

/** The value of a store, tracked for the lifetime of the component. The store may change. */
export function useStore<T>(
  store: () => { subscribe(listener: () => void): () => void; getSnapshot(): T },
): Readonly<ShallowRef<T>> {
  const snapshot = shallowRef(store().getSnapshot())
  watch(
    store,
    ({ subscribe, getSnapshot }, _before, onCleanup) => {
      const update = () => {
        snapshot.value = getSnapshot()
      }
      update()
      onCleanup(subscribe(update))
    },
    { immediate: true, flush: 'sync' },
  )
  return snapshot
}
