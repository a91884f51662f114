import { type Accessor, from } from 'solid-js'

/** What a store of the page holds, followed as long as its owner lives. */
export function fromStore<T>(store: {
  subscribe(listener: () => void): () => void
  getSnapshot(): T
}): Accessor<T> {
  return from<T>((set) => store.subscribe(() => set(store.getSnapshot)), store.getSnapshot())
}
