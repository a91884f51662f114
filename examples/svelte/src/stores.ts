import { queue } from '@countersign/example-page/dialog'
import { grants } from '@countersign/example-page/grants'
import { createSubscriber } from 'svelte/reactivity'

/** Whatever reads the snapshot in a template or an effect runs again when it is another. */
function followed<T>(store: { subscribe(listener: () => void): () => void; getSnapshot(): T }): {
  readonly snapshot: T
} {
  const track = createSubscriber((update) => store.subscribe(update))
  return {
    get snapshot() {
      track()
      return store.getSnapshot()
    },
  }
}

/** The requests, one at a time. */
export const approvals = followed(queue)

/** What was approved for the rest of the chat. */
export const standing = followed(grants)
