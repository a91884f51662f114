import { anySignal } from '../encoding/signals.js'
import type { ApprovalRef, ClaimResult, Ledger, LedgerAnswer } from './ledger.js'

export interface ClaimOptions {
  /** How long a claim holds without being renewed, in milliseconds. */
  readonly leaseMs: number
  /** How long to wait for another holder's outcome, in milliseconds; afterwards the result is `in-progress`. */
  readonly waitMs: number
  readonly signal?: AbortSignal | undefined
}

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 1000

/**
 * Claims and, while another holder carries out the same answer, waits for its outcome. Asks the ledger again when it says that
 * the entry changed, and else at growing intervals up to a second, which also notices a lapsed lease.
 */
export async function claimAndWait(
  ledger: Ledger,
  ref: ApprovalRef,
  answer: LedgerAnswer,
  holder: string,
  options: ClaimOptions,
): Promise<ClaimResult> {
  const deadline = AbortSignal.timeout(options.waitMs)
  const stop = anySignal([deadline, options.signal])
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    const round = new AbortController()
    // listening begins before the claim, so that a change in between is not missed
    const woken = wakeUp(ledger, ref, anySignal([stop, round.signal]))
    try {
      const result = await ledger.claim(ref, answer, holder, options.leaseMs)
      if (result.status !== 'in-progress' || stop.aborted) return result
      await Promise.race([woken, sleep(pause, anySignal([stop, round.signal]))])
    } finally {
      round.abort()
    }
  }
}

/** Never rejects: where listening fails, the pauses alone decide when to ask again. */
function wakeUp(ledger: Ledger, ref: ApprovalRef, signal: AbortSignal): Promise<void> {
  const never = new Promise<void>(() => {})
  return ledger.changed?.(ref, signal).catch(() => never) ?? never
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done)
  })
}
