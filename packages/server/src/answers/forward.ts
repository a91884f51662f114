import { CountersignError, type ToolCall } from '@countersign/core'
import { randomId } from '../encoding/ids.js'
import type { ForwardedCalls } from '../history/forwarded.js'
import { providerApprovalOf } from '../history/history.js'
import { claimAndWait } from '../ledger/claim-and-wait.js'
import type { ToolOutcome as RanOutcome } from '../ledger/ledger.js'
import type { ToolOutcome } from '../outcome.js'
import type { RunScope } from '../scope/scope.js'
import { type Claim, complete, keepLease, record } from './claim.js'
import { interruptedOutcome, restoreOutcome } from './outcome.js'

/** The calls that a request to the model forwards, claimed so that no other request forwards them too. */
export interface TakenForwards {
  readonly claims: ForwardClaims
  /** The outcomes of calls that another request has forwarded. */
  readonly results: ReadonlyMap<ToolCall, ToolOutcome>
}

/**
 * Claims approved calls of the provider right before the request that reports the approvals. An approval is reported once: if another
 * request has reported it, this one waits for the result.
 *
 * @throws CountersignError `ledger-unavailable`; then nothing is reported, and the approval can be reported later.
 */
export async function takeForwards(scope: RunScope, forwarded: ForwardedCalls): Promise<TakenForwards> {
  const claims = new ForwardClaims(scope)
  const results = new Map<ToolCall, ToolOutcome>()
  try {
    // The last call of each approval: a history may contain one twice.
    const calls = new Map([...forwarded.keys()].map((call) => [providerApprovalOf(call), call]))
    for (const [approvalId, call] of calls) {
      const taken = await take(scope, call, approvalId)
      if (taken === 'stopped') continue
      if ('holder' in taken) claims.add(taken)
      else results.set(call, taken)
    }
  } catch (error) {
    await claims.release()
    throw new CountersignError('ledger-unavailable', NOT_CALLED, { isForUsers: true }, error)
  }
  return { claims, results }
}

const NOT_CALLED =
  'The model was not called, since its provider may have been told of an approval already. Send the request again later.'

/** A run's claims on calls being reported to the provider. Each ends once. */
export class ForwardClaims {
  readonly #held = new Map<ToolCall, { readonly claim: Claim; readonly stopRenewing: () => void }>()

  constructor(private readonly scope: RunScope) {}

  /** Calls whose outcome is not known yet. */
  get open(): readonly ToolCall[] {
    return [...this.#held.keys()]
  }

  add(claim: Claim): void {
    this.#held.set(claim.call, { claim, stopRenewing: keepLease(this.scope, claim) })
  }

  async end(call: ToolCall, outcome: RanOutcome): Promise<void> {
    const claim = this.#letGo(call)
    if (claim !== undefined) await complete(this.scope, claim, outcome)
  }

  /** Releases calls that were certainly not reported: a later request can claim them. */
  async release(): Promise<void> {
    for (const call of this.open) {
      const claim = this.#letGo(call)
      if (claim !== undefined) await record(this.scope, claim, handedOut(call))
    }
  }

  #letGo(call: ToolCall): Claim | undefined {
    const held = this.#held.get(call)
    held?.stopRenewing()
    this.#held.delete(call)
    return held?.claim
  }
}

/** The call is left to the provider, which does not know yet. */
function handedOut(call: ToolCall): RanOutcome {
  return { type: 'handed-out', arguments: call.function.arguments }
}

/** More than one is needed only if the request that held the call released it. */
const ATTEMPTS = 3

/** The claim, or the outcome if another request has forwarded the call. `stopped`: the run was stopped while it waited, and calls no model any more. */
async function take(
  scope: RunScope,
  call: ToolCall,
  approvalId: string | undefined,
): Promise<Claim | ToolOutcome | 'stopped'> {
  if (approvalId === undefined) throw new Error(`The call ${call.id} names no approval.`)
  const { ledger, leaseMs, waitMs } = scope.settings.approvals
  const ref = { owner: scope.owner, threadId: scope.threadId, approvalId }
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const claim = { ref, holder: randomId('holder_'), call }
    const again = await ledger.reclaim(ref, claim.holder, leaseMs)
    if (again.status === 'claimed') return claim
    // Claiming with the answer in the ledger waits for its outcome.
    const { state } = (await ledger.lookup(ref)) ?? {}
    const answer =
      state === undefined || state.phase === 'issued'
        ? ({ decision: 'approve', scope: 'once' } as const)
        : state.answer
    const found = await claimAndWait(ledger, ref, answer, claim.holder, {
      leaseMs,
      waitMs,
      signal: scope.stop,
    })
    // Only with a ledger that keeps nothing.
    if (found.status === 'claimed') return claim
    if (found.status === 'interrupted') return interruptedOutcome()
    if (scope.stop.aborted) return 'stopped'
    if (found.status !== 'repeat') throw new Error(`The approval ${approvalId} is ${found.status}.`)
    if (found.outcome.type !== 'handed-out') return restoreOutcome(found.outcome)
  }
  throw new Error(`The approval ${approvalId} could not be claimed for the provider.`)
}
