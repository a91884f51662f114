import { failed, type Message, type ToolOutcome } from '@countersign/core'
import { readArguments } from '../encoding/canonical.js'
import { randomId } from '../encoding/ids.js'
import { type ApprovalRequest, describeRequest } from '../gate/ask.js'
import { decideGate } from '../gate/gate.js'
import { type CallSite, isProviderExecuted, MOVED_ON } from '../history/history.js'
import { readOwn } from '../history/metadata.js'
import type { ApprovalRef, ClaimResult, LedgerAnswer } from '../ledger/ledger.js'
import { gateContext, type RunScope } from '../scope/scope.js'
import { readCall } from '../tools/call.js'
import { approvalIdOf } from './answers.js'
import type { IssuedRecords } from './issued.js'
import type { Refusal } from './refusals.js'
import { interruptedOutcome, rejection, restoreOutcome } from './stored-outcome.js'
import { verifyCallToken } from './verdicts.js'

/** What becomes of a call that has no result and was not answered by this request. */
export type Fate =
  | { readonly kind: 'result'; readonly site: CallSite; readonly outcome: ToolOutcome }
  /** Still a good question: it is asked again, with its own token. */
  | { readonly kind: 'open'; readonly site: CallSite; readonly request: ApprovalRequest }
  /** The provider's to run: it was approved, and has no result yet. */
  | { readonly kind: 'forwarded'; readonly site: CallSite }
  /** The client's to run; there is nothing to ask. */
  | { readonly kind: 'client'; readonly site: CallSite }

/**
 * Decides about one open call. None of them runs here, whatever a history says: what was asked stays open or is settled, an
 * ordinary call is closed as cancelled.
 */
export async function decideFate(
  scope: RunScope,
  site: CallSite,
  issued: IssuedRecords,
  refusal: Refusal | undefined,
  messages: readonly Message[],
): Promise<Fate> {
  const own = readOwn(site.call.metadata)
  const entry = issued.entryOf(site)
  const token = own.token ?? entry?.record.token
  const approvalId = entry?.record.approvalId ?? approvalIdOf(site)
  if (token === undefined || approvalId === undefined) return decideUnasked(scope, site, refusal, messages)
  const ref = { owner: scope.owner, threadId: scope.threadId, approvalId }
  const close = async (code: Refusal['code'] | undefined, reason?: string, known = true): Promise<Fate> => {
    const answer: LedgerAnswer =
      code === 'approval-expired' ? { decision: 'expire' } : { decision: 'cancel', code, reason }
    return known
      ? closeCall(scope, site, issued, ref, answer)
      : { kind: 'result', site, outcome: rejection(answer) }
  }

  const { function: called } = site.call
  const read = readArguments(called.arguments)
  if (!read.ok) return close('approval-tampered', undefined, entry !== undefined)
  const verified = await verifyCallToken(scope, token, ref, site, read.canonical)
  if (!verified.ok) return close(refusal?.code ?? verified.code, undefined, entry !== undefined)
  // what was wrong with the answer is what the model is told
  if (refusal?.fate === 'close') return close(refusal.code, refusal.message)
  if (refusal === undefined && (site.movedOn || own.state === 'cancelled')) return close(undefined, MOVED_ON)
  if (refusal !== undefined && site.movedOn && refusal.fate === 'as-found') return close(refusal.code)

  const stored = await storedResult(scope, site, issued, approvalId)
  if (stored !== undefined) return stored
  const ready = await readCall(scope.toolkit, {
    id: site.call.id,
    name: called.name,
    arguments: called.arguments,
    providerExecuted: isProviderExecuted(site.call),
  })
  if (!ready.ok) return close('approval-stale', ready.failure.reason)
  const terms = { ...verified.claims, token: String(token), shown: entry?.record.shown }
  try {
    return { kind: 'open', site, request: describeRequest(scope, ready.call, terms) }
  } catch (error) {
    scope.settings.warn(`The request for ${called.name} cannot be described any more.`, error)
    return close('approval-stale')
  }
}

/** Settles a question without the person. Where somebody was faster, that is what the call gets. */
export async function closeCall(
  scope: RunScope,
  site: CallSite,
  issued: IssuedRecords,
  ref: ApprovalRef,
  answer: LedgerAnswer,
): Promise<Fate> {
  const settled = await closeInLedger(scope, ref, answer)
  if (settled?.status === 'repeat') return kept(site, restoreOutcome(settled.outcome))
  if (settled?.status === 'conflict') return conflicting(scope, site, issued, ref.approvalId)
  return { kind: 'result', site, outcome: rejection(answer) }
}

/** A call that nobody was asked about: the client's own tools are left to it, any other is closed. */
async function decideUnasked(
  scope: RunScope,
  site: CallSite,
  refusal: Refusal | undefined,
  messages: readonly Message[],
): Promise<Fate> {
  const closed = (reason: string, code?: string): Fate => ({
    kind: 'result',
    site,
    outcome: failed('cancelled', reason, code),
  })
  if (refusal !== undefined) return closed('the approval is not valid', refusal.code)
  if (site.movedOn) return closed(MOVED_ON)
  const { id, function: called } = site.call
  const providerExecuted = isProviderExecuted(site.call)
  const ready = await readCall(scope.toolkit, {
    id,
    name: called.name,
    arguments: called.arguments,
    providerExecuted,
  })
  if (!ready.ok || ready.call.tool.location === 'server') return closed('the call was not completed')
  const { approvals, warn } = scope.settings
  const gate = await decideGate(ready.call, gateContext(scope, id, messages), {
    policy: approvals.policy,
    warn,
  })
  return gate.kind === 'run' ? { kind: 'client', site } : closed('nobody was asked', 'approval-not-found')
}

/** The ledger's own outcome, where the history has lost it. */
async function storedResult(
  scope: RunScope,
  site: CallSite,
  issued: IssuedRecords,
  approvalId: string,
): Promise<Fate | undefined> {
  try {
    const { state } = (await issued.lookup(approvalId)) ?? {}
    if (state?.phase === 'done') return kept(site, restoreOutcome(state.outcome))
    if (state?.phase === 'interrupted') return { kind: 'result', site, outcome: interruptedOutcome() }
  } catch (error) {
    scope.settings.warn('The ledger could not be read.', error)
  }
  return undefined
}

async function conflicting(
  scope: RunScope,
  site: CallSite,
  issued: IssuedRecords,
  approvalId: string,
): Promise<Fate> {
  return (
    (await storedResult(scope, site, issued, approvalId)) ?? {
      kind: 'result',
      site,
      outcome: interruptedOutcome(),
    }
  )
}

function kept(site: CallSite, from: ReturnType<typeof restoreOutcome>): Fate {
  if (from.kind === 'outcome') return { kind: 'result', site, outcome: from.outcome }
  return { kind: isProviderExecuted(site.call) ? 'forwarded' : 'client', site }
}

/** Settles a request that can no longer be answered. What the ledger does not know needs no settling. */
async function closeInLedger(
  scope: RunScope,
  ref: ApprovalRef,
  answer: LedgerAnswer,
): Promise<ClaimResult | undefined> {
  const { ledger, leaseMs } = scope.settings.approvals
  try {
    return await ledger.claim(ref, answer, randomId('holder_'), leaseMs)
  } catch (error) {
    scope.settings.warn('A request could not be settled in the ledger.', error)
    return undefined
  }
}
