const { setImmediate: soon } = globalThis

/** Collects unhandled rejections while `work` runs. */
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

/** The rejections since the last call. The platform reports them after all microtasks have run. */
export async function takeRejections(): Promise<unknown[]> {
  await new Promise<void>((resolve) => soon(resolve))
  return noted.splice(0)
}
