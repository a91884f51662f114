import { type Accessor, from } from 'solid-js'

/** The value of a store, tracked for the lifetime of its owner. */
export function fromStore<T>(store: {
  subscribe(listener: () => void): () => void
  getSnapshot(): T
}): Accessor<T> {
  return from<T>((set) => store.subscribe(() => set(store.getSnapshot)), store.getSnapshot())
}
