import { onScopeDispose, type ShallowRef, shallowRef } from 'vue'

/** The value of a store, tracked for the lifetime of the component. */
export function useStore<T>(store: {
  subscribe(listener: () => void): () => void
  getSnapshot(): T
}): Readonly<ShallowRef<T>> {
  const snapshot = shallowRef(store.getSnapshot())
  onScopeDispose(
    store.subscribe(() => {
      snapshot.value = store.getSnapshot()
    }),
  )
  return snapshot
}
