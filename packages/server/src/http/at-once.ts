/** Values that one batch has at most. */
const MOST = 256

/**
 * The values of a source in batches: all that it gives at once, without being waited for. What it gives while a batch is in the hands of whoever
 * reads is in the next one.
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
      // whoever stops reading is not told of what fails then
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

/** After all that needs no more than promises to come. */
function soon(): Promise<undefined> {
  return new Promise((resolve) => {
    setTimeout(() => resolve(undefined))
  })
}
