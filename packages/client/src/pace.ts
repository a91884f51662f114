/** How long (ms) events are applied before the page has its turn; a task counts as long from 50 ms on. */
const slice = 8

/** How many events are applied between two looks at the clock. */
const stride = 64

/**
 * Cuts the work on events that are all there already into tasks. What it makes is to be called after each event, and gives what is to be
 * awaited before the next one, if anything.
 */
export function createPace(): () => Promise<void> | undefined {
  let count = 0
  let since = performance.now()
  return () => {
    if (++count % stride !== 0 || performance.now() - since < slice) return undefined
    return nextTask().then(() => {
      since = performance.now()
    })
  }
}

/** By a message, for the timers of a hidden page are slow. */
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => {
      port1.close()
      resolve()
    }
    port2.postMessage(undefined)
  })
}
