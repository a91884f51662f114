import { untilAborted } from '../encoding/signals.js'
import { type Ledger, ledgerKey } from '../ledger/ledger.js'
import type { RunScope } from '../scope/scope.js'

/** The last task of each conversation, by its ledger: agents that share one may answer requests of one conversation. */
const tails = new WeakMap<Ledger, Map<string, Promise<unknown>>>()

/**
 * Begins a task once those that other runs of the conversation have begun in this process have ended. A run that has stopped does not wait: its
 * task begins, and finds that out.
 */
export async function inTurn<T>(
  { settings, owner, threadId, stop }: RunScope,
  task: () => Promise<T>,
): Promise<T> {
  const { ledger } = settings.approvals
  const lasts = tails.get(ledger) ?? new Map<string, Promise<unknown>>()
  tails.set(ledger, lasts)
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
