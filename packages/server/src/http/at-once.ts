import type { AGUIEvent } from '@countersign/core'
import type { RunEvents } from '../run/agent.js'

/** The events of a run in batches: everything that comes within one turn of the event loop, such as with one read of the model's response. */
export async function* atOnce(run: RunEvents): AsyncGenerator<readonly AGUIEvent[]> {
  try {
    for (;;) {
      const first = await run.next()
      if (first.done) return
      await nextTurn()
      yield [first.value, ...(run.waiting?.() ?? [])]
    }
  } finally {
    await run.return?.()
  }
}

/** Not every runtime has `setImmediate`. */
const schedule: (callback: () => void) => unknown = globalThis.setImmediate ?? setTimeout

function nextTurn(): Promise<void> {
  return new Promise((resolve) => void schedule(resolve))
}
