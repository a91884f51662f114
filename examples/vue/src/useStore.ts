import { onScopeDispose, type ShallowRef, shallowRef } from 'vue'

/** What a store of the page holds, followed as long as the component lives. */
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
