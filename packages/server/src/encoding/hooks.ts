import { reportRejection } from '@countersign/core'
import { untilAborted } from './signals.js'

/** A hook of the application did not return before nobody waited for it any longer. One object: what a hook throws may not even be looked at. */
const LEFT = new Error('A hook of the application did not return before its run had to end.')

/** Whether an error means that a hook was left. It is no failure of the hook, and what the hook decides is not known. */
export function isLeft(error: unknown): boolean {
  return error === LEFT
}

/** Does work that calls hooks outside of a run. `stop` aborts when the work must end: once `gone` has aborted, if not before. */
export type Outside = <T>(work: (stop: AbortSignal) => Promise<T>, gone?: AbortSignal) => Promise<T>

/** For `catch`: nothing if a hook was left, any other error is thrown. */
export function unlessLeft(error: unknown): undefined {
  if (!isLeft(error)) throw error
}

/**
 * Calls a function of the application, and waits for what it returns at most until `leave` aborts. Each function that may return a promise
 * is called through here, so that none can hold a run that is to end. If `leave` has aborted already, only what is there in this turn of the
 * event loop counts: a function that is not asynchronous still decides.
 *
 * @throws what the hook throws; if it was left, an error for which `isLeft` holds. Every `catch` around a hook must pass that on.
 */
export async function callHook<T>(
  leave: AbortSignal | undefined,
  hook: () => T | PromiseLike<T>,
): Promise<T> {
  if (leave === undefined) return await hook()
  const ended = await untilAborted(async () => await hook(), leave)
  if (ended.left) throw LEFT
  return ended.value
}

/** Calls a function of the application that nobody waits for: if it throws or rejects, that is reported and stops nothing. */
export function notify(hook: () => unknown, report: (error: unknown) => void): void {
  try {
    reportRejection(hook(), report)
  } catch (error) {
    report(error)
  }
}
