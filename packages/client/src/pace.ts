/** How long (ms) events are applied before the page has its turn; a task counts as long from 50 ms on. */
const slice = 8

/** How many events are applied between two looks at the clock. */
const stride = 64

/** Cuts the work on events that are all there already into tasks. */
export class Pace {
  #count = 0
  #since = performance.now()

  /** Called after each event: whether the slice is over. */
  afterOne(): boolean {
    return ++this.#count % stride === 0 && performance.now() - this.#since >= slice
  }

  async nextSlice(): Promise<void> {
    await nextTask()
    this.#since = performance.now()
  }
}

declare const setImmediate: ((callback: () => void) => unknown) | undefined

/** As Node and React Native have it, else by a message: the timers of a hidden page are slow. */
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof setImmediate === 'function') {
      setImmediate(resolve)
      return
    }
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => {
      port1.close()
      resolve()
    }
    port2.postMessage(undefined)
  })
}
