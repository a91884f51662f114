import type { Message, Preview } from '@countersign/core'
import { isLeft, unlessLeft } from '../encoding/hooks.js'
import { abortLater, anySignal } from '../encoding/signals.js'
import { askPolicy } from '../gate/gate.js'
import { findPermission, grantAnswered, reasonOfDenial, returnUse } from '../gate/grants.js'
import { type ComputedPreview, computePreview } from '../gate/preview.js'
import { type ApprovalRecord, MAX_REASON_LENGTH } from '../ledger/ledger.js'
import { type AuditStep, audit } from '../scope/audit.js'
import { runTool } from '../scope/run-tool.js'
import { gateContext, type RunScope } from '../scope/scope.js'
import { previewHash } from '../tokens/token.js'
import type { ReadyCall } from '../tools/call.js'
import type { Execution } from '../tools/execution.js'
import { logThrown, toolFailed } from '../tools/tool-errors.js'
import type { AgentTool } from '../tools/toolkit.js'
import { requestAgain } from './ask-again.js'
import { auditNames, type Claim, complete, holdsLease, keepLease, record } from './claim.js'
import {
  type CallOutcome,
  decidedBy,
  outcomeOfUnstarted,
  type Refusal,
  restoreOutcome,
  toStored,
  type Unstarted,
} from './outcome.js'
import { isStillBound, type RunSettlement, STALE } from './prepare.js'
import type { VerifiedVerdict } from './verify.js'

/** A call that this run has claimed. `revision` is the ledger's from the claim, for the grant that may follow. */
export interface ClaimedCall extends Omit<RunSettlement, 'kind'> {
  readonly verdict: VerifiedVerdict
  readonly record?: ApprovalRecord | undefined
  readonly holder: string
  readonly revision: number
  readonly messages: readonly Message[]
  /**
   * Whether an earlier attempt was interrupted. Then the call runs again only under the same idempotency key, and only if every check of a
   * start passes; it is never asked about again, which would give it a new key.
   */
  readonly mayHaveRun: boolean
  /** What the audit trail records of the claim. Absent if it is recorded already. */
  readonly step?: Omit<AuditStep, 'event'> | undefined
}

/**
 * Runs a claimed call and records the outcome. Once the run has stopped, or its reader has gone, the tool may finish within its own
 * `timeout`, or `approvals.wait` if it has none; then it is abandoned, so that it does not block its thread. The lease is kept from here
 * on. A call that must not start after all ends with the reason; nothing if it belongs to another request now.
 */
export async function runClaimed(
  scope: RunScope,
  claimed: ClaimedCall,
): Promise<CallOutcome | Refusal | undefined> {
  const late = abortLater(scope.stop, scope.settings.approvals.waitMs)
  return runHeld(scope, claimed, late.signal).finally(late.cancel)
}

/** `late`: aborted when the tool must have ended. Until the start, hooks have that time as well. */
async function runHeld(
  scope: RunScope,
  claimed: ClaimedCall,
  late: AbortSignal,
): Promise<CallOutcome | Refusal | undefined> {
  const patient = { ...scope, leave: anySignal([scope.callerSignal, late]) }
  const { verdict, holder, answer, step, call, mayHaveRun } = claimed
  const { site, claims } = verdict
  const { tool } = call
  const claim: Claim = { ref: verdict.ref, holder, call: site.call }
  const decided = decidedBy(scope, answer, claims.scopes)
  const stopRenewing = keepLease(scope, claim)
  let execution: Execution
  try {
    if (step !== undefined) await audit(patient, { event: 'claimed', ...step })
    if (tool.location === 'server') await audit(patient, { event: 'started', ...auditNames(claim) })
    const start = await decideStart(patient, claim, claimed).catch((error: unknown) =>
      notStarted(scope, call, error),
    )
    if (start.kind === 'changed') return await askAgain(scope, claim, claimed, start.preview)
    if (start.kind === 'not') {
      const outcome = outcomeOfUnstarted(start.unstarted, mayHaveRun)
      await complete(scope, claim, outcome)
      return { kind: 'result', site, outcome: restoreOutcome(outcome), decided }
    }
    if (tool.location !== 'server') return handOut(scope, claim, claimed)
    // Only once the call may start, and before the tool can change the input, from which the grant's key is read.
    const granting = grantOnce(scope, claimed)
    execution = await execute(scope, claimed, tool, start.preview, late)
    await granting
  } finally {
    stopRenewing()
  }
  switch (execution.kind) {
    case 'finished':
      await complete(scope, claim, toStored(execution.outcome))
      return { kind: 'result', site, outcome: execution.outcome, decided }
    case 'interrupted': {
      const stored = { type: 'interrupted', message: execution.reason } as const
      await complete(scope, claim, stored)
      return { kind: 'result', site, outcome: restoreOutcome(stored), decided }
    }
    case 'threw':
      if (tool.failureMode !== 'throw') {
        logThrown(scope.settings.warn, execution.error, call.name, site.call.id)
        await complete(scope, claim, toStored(execution.failure))
        return { kind: 'result', site, outcome: execution.failure, decided }
      }
      // An idempotent tool may run again for the same answer, so its failure is not final.
      await complete(scope, claim, tool.idempotent ? { type: 'interrupted' } : toStored(execution.failure))
      return { kind: 'threw', site, error: toolFailed(call.name, execution.error) }
    default:
      return execution satisfies never
  }
}

type Start =
  /** `preview`: the approved one, unmasked. */
  | { readonly kind: 'start'; readonly preview: Preview | undefined }
  | { readonly kind: 'not'; readonly unstarted: Unstarted }
  /** Nothing has run, so the user can be asked again. */
  | { readonly kind: 'changed'; readonly preview: ComputedPreview | undefined }

const not = (unstarted: Unstarted) => ({ kind: 'not', unstarted }) as const
const stale = (because: string, code: 'approval-stale' | 'ledger-unavailable' = 'approval-stale') =>
  not({ why: 'stale', because, code })

/**
 * Whether a claimed call may start now. The caller must then start it without awaiting anything else: everything that may have changed
 * since the answer was checked is checked here, the ledger last, then the clock.
 */
async function decideStart(scope: RunScope, claim: Claim, claimed: ClaimedCall): Promise<Start> {
  const { verdict, asked, call, messages, approvedPreview, mayHaveRun, mandate } = claimed
  const { approvals, now } = scope.settings
  // At the start, in the order of the table in docs/security.md: the policy, the preview, what was bound, the lease, standing denials,
  // the time.
  const gate = gateContext(scope, call.id, messages)
  const { decision, reason } = await askPolicy(scope, call, gate)
  if (decision === 'block') return not({ why: 'forbidden', reason: reason?.slice(0, MAX_REASON_LENGTH) })
  const preview = await computePreview(scope, call, gate)
  const hash = preview && (await previewHash(verdict.claims, preview.texts, approvals.keyring))
  // After the preview, which may take seconds.
  if (!(await isStillBound(scope, verdict, asked, gate))) return stale(STALE)
  const isStopped = scope.leave.aborted && call.tool.location === 'server'
  const gives = mandate !== undefined && hash === approvedPreview && !isStopped
  const ended = async (start: Start) => {
    // An idempotent call may yet start by the same answer, which is not counted again.
    if (gives && !call.tool.idempotent) await returnUse(scope, call, verdict.approvalId)
    return start
  }
  const given = gives ? await grantAnswered(scope, claimed, mayHaveRun) : undefined
  if (given === 'exceeded') return stale(USED_UP)
  if (given === 'unknown') return ended(stale(UNCOUNTED, 'ledger-unavailable'))
  const renewed = now()
  if (!(await holdsLease(scope, claim))) return ended(not({ why: 'lost' }))
  if (call.tool.mandates !== undefined) {
    const standing = await findPermission(scope, call, 'denial')
    if (standing.kind === 'denied')
      return ended(not({ why: 'forbidden', reason: reasonOfDenial(standing.grant) }))
    if (standing.kind === 'unknown') return ended(stale(UNKNOWN_DENIALS, 'ledger-unavailable'))
  }
  // A call that somebody else runs is only handed over here, and can be handed over again.
  if (scope.leave.aborted && call.tool.location === 'server') return ended(not({ why: 'stopped' }))
  // To read the denials may have taken longer than the lease.
  if (now() >= renewed + approvals.leaseMs) return ended(not({ why: 'lost' }))
  if (now() >= verdict.claims.expiresAt) return ended(not({ why: 'expired' }))
  // The call itself may have changed it, or something else has: only the user can find out.
  if (hash !== approvedPreview && mayHaveRun) return stale(EFFECT_CHANGED)
  return hash === approvedPreview ? { kind: 'start', preview: preview?.exact } : { kind: 'changed', preview }
}

/** Why a claimed call does not start if that could not be decided: the claim is settled, whatever a hook does. */
function notStarted({ settings }: RunScope, { name }: ReadyCall, error: unknown): Start {
  if (isLeft(error)) return not({ why: 'stopped' })
  settings.warn(`Whether ${name} may start could not be decided.`, error)
  return stale(UNDECIDED)
}

const USED_UP = 'The mandate that was chosen for it and other calls does not cover them all'
const UNCOUNTED =
  'Whether the mandate that was chosen for it covers it could not be stored, so it was not started'
const UNDECIDED = 'Whether it may start could not be checked, so it was not started'
const UNKNOWN_DENIALS = 'Whether a standing denial refuses it could not be read, so it was not started'
const EFFECT_CHANGED = 'What it would do has changed, perhaps because it has run'

/** How often in a row approval is requested again for one call. */
const MAX_ASKED_AGAIN = 5

/**
 * The preview has changed: nothing has run, nothing runs, and a new request replaces the one that was answered. It is for the call as the model made it,
 * without the user's edits: only that is signed by the token that was verified. Nobody is asked once the user has moved on, or if the
 * preview changes each time.
 */
async function askAgain(
  scope: RunScope,
  claim: Claim,
  { verdict, asked, call, messages, record, answer }: ClaimedCall,
  current: ComputedPreview | undefined,
): Promise<CallOutcome | undefined> {
  const { site, claims } = verdict
  const ended = (outcome: ReturnType<typeof outcomeOfUnstarted>): CallOutcome => {
    const decided = decidedBy(scope, answer, claims.scopes)
    return { kind: 'result', site, outcome: restoreOutcome(outcome), decided }
  }
  const settled = { type: 'cancelled', reason: `${STALE}; ask again.`, code: 'approval-stale' } as const
  if (site.superseded || claims.again >= MAX_ASKED_AGAIN) {
    const outcome = site.superseded ? settled : { ...settled, reason: UNSTEADY }
    await complete(scope, claim, outcome)
    return ended(outcome)
  }
  // Settled first: at no time can both requests be answered.
  const next = scope.settings.approvals.generateId()
  const recorded = await complete(scope, claim, { ...settled, next })
  if (recorded !== 'held') return ended(recorded === 'lost' ? { type: 'interrupted' } : settled)
  const preview = call === asked ? current : undefined
  const replaced = { claims, record, next, messages, preview }
  const asking = await requestAgain(scope, asked, replaced).catch(unlessLeft)
  // Another run may have found that it was missing, and made it, or will.
  return asking?.ok ? { kind: 'asked-again', site, request: asking.request } : undefined
}

const UNSTEADY = `What the call would do has changed each time it was approved, ${MAX_ASKED_AGAIN + 1} times in a row.`

/** Leaves a call to its client or provider, which starts it: only if the ledger recorded that while the claim was held. */
async function handOut(scope: RunScope, claim: Claim, claimed: ClaimedCall): Promise<CallOutcome | Refusal> {
  const { call, verdict, answer } = claimed
  const { site, approvalId, claims } = verdict
  const decided = decidedBy(scope, answer, claims.scopes)
  const recorded = await record(scope, claim, { type: 'handed-out', arguments: call.canonical })
  // If the client learns that the call was interrupted, it must never get it later. Repeating the answer returns what the ledger has then.
  if (recorded === 'unknown')
    return { kind: 'refused', site, approvalId, code: 'ledger-unavailable', message: UNKNOWN, effect: 'open' }
  const end = { event: 'completed', ...auditNames(claim) } as const
  if (recorded !== 'held') {
    await audit(scope, { ...end, outcome: 'interrupted' })
    return { kind: 'result', site, outcome: restoreOutcome({ type: 'interrupted' }), decided }
  }
  await grantOnce(scope, claimed)
  // The request that reports the approval to the provider claims the call again, and records its outcome.
  if (call.tool.location === 'provider') return { kind: 'forwarded', site, decided }
  await audit(scope, { ...end, outcome: 'handed-out' })
  return { kind: 'handed-out', site, input: call.args, decided }
}

/**
 * An answer grants at most once: what it granted may have expired, or be used up, by the time it is repeated. If an attempt ended before it
 * was stored, the answer counts for its call alone. A mandate was stored before the start, because it limits what starts.
 */
async function grantOnce(scope: RunScope, claimed: ClaimedCall): Promise<void> {
  if (!claimed.mayHaveRun && claimed.mandate === undefined) await grantAnswered(scope, claimed)
}

const UNKNOWN = 'The ledger did not say in time whether the call is handed out; send the answer again later.'

function execute(
  scope: RunScope,
  { verdict, call, messages }: ClaimedCall,
  tool: Extract<AgentTool, { location: 'server' }>,
  preview: Preview | undefined,
  late: AbortSignal,
): Promise<Execution> {
  return runTool(scope, call, tool, {
    ...{ messages, messageId: verdict.site.message.id, approved: true, idempotencyKey: verdict.approvalId },
    signal: scope.callerSignal,
    leave: tool.timeout === undefined ? late : undefined,
    ...(preview !== undefined && { preview }),
  })
}
