/** How long (ms) events are applied before yielding to the page. Browsers count a task as long from 50 ms on. */
const slice = 8

/** How many events are applied between two checks of the clock. */
const stride = 64

/** Splits the work on events that have already arrived into tasks. */
export class Pace {
  #count = 0
  #since = performance.now()

  /** Call after each event; returns whether to yield. */
  afterOne(): boolean {
    return ++this.#count % stride === 0 && performance.now() - this.#since >= slice
  }

  async nextSlice(): Promise<void> {
    await nextTask()
    this.#since = performance.now()
  }
}

declare const setImmediate: ((callback: () => void) => unknown) | undefined

/** Uses `setImmediate` (Node, React Native) or else a message: a hidden page throttles timers. */
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
