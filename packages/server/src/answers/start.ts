import { askPolicy } from '../gate/gate.js'
import { MAX_REASON_LENGTH } from '../ledger/ledger.js'
import { gateContext, type RunScope } from '../scope/scope.js'
import { NOT_STARTED } from '../tools/execute.js'
import { type Claim, holdsLease } from './claim.js'
import type { ClaimedCall } from './claimed-call.js'
import { isStillBound } from './prepare.js'
import type { Unstarted } from './stored-outcome.js'

/**
 * Why a claimed call must not start now, as an outcome for the ledger; undefined if it may start. The caller must then start it without
 * awaiting anything else: everything that may have changed since the answer was checked is checked here, the ledger last, then the clock.
 */
export async function reasonNotToStart(
  scope: RunScope,
  claim: Claim,
  { verdict, asked, call, messages }: ClaimedCall,
): Promise<Unstarted | undefined> {
  const { approvals, now, warn } = scope.settings
  const gate = gateContext(scope, call.id, messages)
  if (!(await isStillBound(scope, verdict, asked, gate)))
    return { type: 'cancelled', reason: STALE, code: 'approval-stale' }
  const { decision, reason } = await askPolicy(call, gate, { policy: approvals.policy, warn })
  if (decision === 'block') return { type: 'denied', reason: reason?.slice(0, MAX_REASON_LENGTH) }
  if (!(await holdsLease(scope, claim))) return { type: 'interrupted' }
  // A call that somebody else runs is only handed over here, and can be handed over again.
  if (scope.callerSignal?.aborted && call.tool.location === 'server')
    return { type: 'cancelled', reason: NOT_STARTED }
  return now() < verdict.claims.expiresAt ? undefined : { type: 'cancelled', code: 'approval-expired' }
}

const STALE = 'What the approval was given for has changed; ask again.'
