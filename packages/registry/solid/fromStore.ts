import { type Accessor, createMemo, from } from 'solid-js'

/** The value of a store, tracked for the lifetime of its owner. The store may change. */
export function fromStore<T>(
  store: Accessor<{ subscribe(listener: () => void): () => void; getSnapshot(): T }>,
): Accessor<T> {
  const value = createMemo(() => {
    const { subscribe, getSnapshot } = store()
    return from<T>((set) => subscribe(() => set(getSnapshot)), getSnapshot())
  })
  return () => value()()
}
