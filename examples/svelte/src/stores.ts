import { chats } from '@countersign/example-page/chats'
import { queue } from '@countersign/example-page/dialog'
import { grants } from '@countersign/example-page/grants'
import { createSubscriber } from 'svelte/reactivity'

/** Templates and effects that read the snapshot run again when it changes. */
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

/** The approval requests, one at a time. */
export const approvals = followed(queue)

/** The session approvals of the chat. */
export const standing = followed(grants)

/** The conversations of the user. */
export const list = followed(chats)
