import type { RunLog, RunWriter } from './run-log.js'

/** A log whose failures stop nothing: a run that can't be recorded continues, but can't be rejoined. */
export function failSafeRunLog(log: RunLog, warn: (message: string, error: unknown) => void): RunLog {
  return {
    async begin(runKey) {
      try {
        return carefulWriter(await log.begin(runKey), warn)
      } catch (error) {
        warn('The run log could not begin a run; it cannot be taken up.', error)
        return { append: () => undefined, end: async () => {} }
      }
    },
    async read(runKey, after, signal, options) {
      try {
        return await log.read(runKey, after, signal, options)
      } catch (error) {
        warn('The run log could not be read.', error)
        return undefined
      }
    },
  }
}

/** After one failure nothing more is written: a record with a gap would be worse than none. */
function carefulWriter(writer: RunWriter, warn: (message: string, error: unknown) => void): RunWriter {
  let broken = false
  const failed = (error: unknown) => {
    broken = true
    warn('The run log could not be written; the run cannot be taken up.', error)
    // Readers must not wait for what will never be written.
    writer.end().catch(() => {})
  }
  const attempt = (write: () => Promise<void> | undefined) => {
    if (broken) return undefined
    try {
      return write()?.catch(failed)
    } catch (error) {
      failed(error)
      return undefined
    }
  }
  return {
    append: (events) => attempt(() => writer.append(events)),
    end: async () => attempt(() => writer.end()),
  }
}
