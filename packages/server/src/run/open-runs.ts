import { CountersignError } from '@countersign/core'
import { type Ledger, ledgerKey, type Owner } from '../ledger/ledger.js'

/** What names a run. */
interface RunName {
  readonly owner: Owner
  readonly threadId: string
  readonly runId: string
}

/** By the ledger: agents that are made anew for each request share one, and so they know of each other's runs. */
const open = new WeakMap<Ledger, Set<string>>()

/** Whether a run of this name is open in this process. */
export function isRunOpen(ledger: Ledger, { owner, threadId, runId }: RunName): boolean {
  return open.get(ledger)?.has(ledgerKey(owner, threadId, runId)) ?? false
}

/** Opens a run. The function that comes back closes it; nothing comes back where one of this name is open already. */
export function openRun(ledger: Ledger, name: RunName): (() => void) | undefined {
  if (isRunOpen(ledger, name)) return undefined
  const runs = open.get(ledger) ?? new Set()
  const key = ledgerKey(name.owner, name.threadId, name.runId)
  open.set(ledger, runs.add(key))
  return () => runs.delete(key)
}

/** The error of a second run of one name. */
export function runIsOpen({ runId }: RunName): CountersignError {
  const message =
    'A run with this id is open already, and was not started a second time. Take it up (rejoin), or send the request with a runId of its own.'
  return new CountersignError('run-open', message, { status: 409, runId })
}
