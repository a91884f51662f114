/** The maximum number of values in a batch. */
const MOST = 256

/**
 * Groups the values of a source into batches: everything that is available without waiting. Values that arrive while a batch is being
 * processed are in the next one.
 */
export async function* atOnce<Value>(source: AsyncIterable<Value>): AsyncGenerator<readonly Value[]> {
  const values = source[Symbol.asyncIterator]()
  const read = () => values.next()
  try {
    for (let pending = read(); ; ) {
      const first = await pending
      if (first.done) return
      const batch = [first.value]
      pending = read()
      // If the reader stops, nobody handles a later failure.
      pending.catch(() => {})
      const later = soon()
      while (batch.length < MOST) {
        const next = await Promise.race([pending, later])
        if (next === undefined || next.done) break
        batch.push(next.value)
        pending = read()
        pending.catch(() => {})
      }
      yield batch
    }
  } finally {
    await values.return?.()
  }
}

/** Resolves after everything that depends only on resolved promises. */
function soon(): Promise<undefined> {
  return new Promise((resolve) => {
    setTimeout(() => resolve(undefined))
  })
}
