/** Hands a value over. Resolves when the reader keeps up, at once after it has gone. */
export type Emit<T> = (value: T) => Promise<void>

/** How many values may wait for the reader before the writer is asked to. */
const HIGH_WATER = 64

/**
 * The values that `write` emits, as they are read. `write` starts with the first read. A reader that stops early aborts `gone`;
 * `write` then goes on to its own end, unheard: a claimed tool must not be torn down because a browser tab was closed.
 */
export function createChannel<T>(
  write: (emit: Emit<T>, gone: AbortSignal) => Promise<void>,
): AsyncIterableIterator<T> {
  const waiting: T[] = []
  const gone = new AbortController()
  let ended: { readonly error?: unknown } | undefined
  let started = false
  let wakeReader = () => {}
  let wakeWriter = () => {}
  let room = Promise.resolve()

  const emit: Emit<T> = (value) => {
    if (gone.signal.aborted) return Promise.resolve()
    waiting.push(value)
    wakeReader()
    if (waiting.length === HIGH_WATER) {
      room = new Promise((resolve) => {
        wakeWriter = resolve
      })
    }
    return room
  }

  const start = () => {
    started = true
    write(emit, gone.signal).then(
      () => {
        ended ??= {}
        wakeReader()
      },
      (error: unknown) => {
        ended ??= { error }
        wakeReader()
      },
    )
  }

  const pull = async (): Promise<IteratorResult<T>> => {
    if (!started) start()
    for (;;) {
      if (gone.signal.aborted) return { done: true, value: undefined }
      const value = waiting.shift()
      if (value !== undefined) {
        if (waiting.length < HIGH_WATER / 2) wakeWriter()
        return { done: false, value }
      }
      if (ended !== undefined) {
        const { error } = ended
        ended = {}
        if (error !== undefined) throw error
        return { done: true, value: undefined }
      }
      await new Promise<void>((resolve) => {
        wakeReader = resolve
      })
    }
  }

  // one read after another: a reader may ask again before it was answered
  let turn: Promise<unknown> = Promise.resolve()
  return {
    next() {
      const result = turn.then(pull)
      turn = result.catch(() => {})
      return result
    },
    async return() {
      gone.abort()
      wakeWriter()
      wakeReader()
      return { done: true, value: undefined }
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}
