const { setImmediate: soon } = globalThis

/** Collects the promises that were rejected and that nobody has heard of, while `work` runs. */
export async function collectingRejections<T>(work: () => Promise<T>): Promise<T> {
  process.on('unhandledRejection', note)
  try {
    return await work()
  } finally {
    process.off('unhandledRejection', note)
  }
}

const noted: unknown[] = []
const note = (reason: unknown): void => void noted.push(reason)

/** What was rejected since the last time. The platform tells of it once all microtasks have run. */
export async function takeRejections(): Promise<unknown[]> {
  await new Promise<void>((resolve) => soon(resolve))
  return noted.splice(0)
}
