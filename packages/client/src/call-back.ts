import { CountersignError, reportRejection } from '@countersign/core'

/** Runs the application's code and returns what it returns; its errors, also those of a promise, are reported and stop nothing here. */
export function callBack<T>(callback: () => T): T | undefined {
  try {
    const given = callback()
    reportRejection(given, report)
    return given
  } catch (error) {
    report(error)
    return undefined
  }
}

/** Fails early: otherwise the error would be thrown at every change, far from its cause. */
export function called<T>(listener: T): T {
  if (typeof listener === 'function') return listener
  throw new CountersignError('invalid-argument', 'A listener is a function.')
}

/** Reports an error of a listener or callback like any uncaught error. */
export function report(error: unknown): void {
  if (typeof reportError === 'function') reportError(error)
  else console.error(error)
}
