import { queue } from '@countersign/example-page/dialog'
import { createSubscriber } from 'svelte/reactivity'

const track = createSubscriber((update) => queue.subscribe(update))

/** The requests, one at a time. Whatever reads the snapshot in a template or an effect runs again when it is another. */
export const approvals = {
  get snapshot() {
    track()
    return queue.getSnapshot()
  },
}
