import { anySignal, sleep } from '../encoding/signals.js'
import type { ApprovalRef, ClaimResult, Ledger, LedgerAnswer } from './ledger.js'

export interface ClaimOptions {
  /** How long a claim holds without renewal, in milliseconds. */
  readonly leaseMs: number
  /** How long to wait for another holder's outcome, in milliseconds; then the result is `in-progress`. */
  readonly waitMs: number
  readonly signal?: AbortSignal | undefined
}

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 1000

/**
 * Claims an answer. While another holder carries out the same answer, waits for its outcome: claims again when the ledger reports
 * a change, and otherwise at intervals growing to one second, which also detects an expired lease.
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
    // Starts listening before the claim, so that no change in between is missed.
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

/** Never rejects: if listening fails, the intervals alone decide when to claim again. */
function wakeUp(ledger: Ledger, ref: ApprovalRef, signal: AbortSignal): Promise<void> {
  const never = new Promise<void>(() => {})
  return ledger.changed?.(ref, signal).catch(() => never) ?? never
}
