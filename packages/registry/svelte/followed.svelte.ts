import { createSubscriber } from 'svelte/reactivity'

/** Templates and effects that read the snapshot of a store run again when it changes. The store may change. */
export function followed<T>(store: () => { subscribe(listener: () => void): () => void; getSnapshot(): T }): {
  readonly snapshot: T
} {
  const current = $derived(store())
  const track = $derived(createSubscriber((update) => current.subscribe(update)))
  return {
    get snapshot() {
      track()
      return current.getSnapshot()
    },
  }
}
