import { untilAborted } from '../encoding/signals.js'
import { ledgerKey } from '../ledger/ledger.js'
import type { RunScope } from '../scope/scope.js'

/** The last task of each conversation of an agent. */
const tails = new WeakMap<RunScope['settings']['approvals'], Map<string, Promise<unknown>>>()

/**
 * Begins a task once those have ended that other runs of the agent have begun for the conversation. A run that has stopped does not wait: its
 * task begins, and finds that out.
 */
export async function inTurn<T>(
  { settings, owner, threadId, stop }: RunScope,
  task: () => Promise<T>,
): Promise<T> {
  const lasts = tails.get(settings.approvals) ?? new Map<string, Promise<unknown>>()
  tails.set(settings.approvals, lasts)
  const key = ledgerKey(owner, threadId)
  const before = lasts.get(key)
  let end = () => {}
  const own = new Promise<void>((resolve) => {
    end = resolve
  })
  const tail = Promise.all([before, own]).then(() => {
    if (lasts.get(key) === tail) lasts.delete(key)
  })
  lasts.set(key, tail)
  try {
    if (before !== undefined) await untilAborted(() => before, stop)
    return await task()
  } finally {
    end()
  }
}
