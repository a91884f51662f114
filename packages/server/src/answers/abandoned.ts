import { type ApprovalDecided, type ApprovalScope, isRecord, type Message } from '@countersign/core'
import { readArguments } from '../encoding/canonical.js'
import { randomId } from '../encoding/ids.js'
import { type ApprovalRequest, describeRequest, optionsOf } from '../gate/ask.js'
import { decideGate } from '../gate/gate.js'
import { termsOf } from '../gate/terms.js'
import { type CallSite, isProviderExecuted, MOVED_ON } from '../history/history.js'
import { asString, type OwnMetadata, readOwn } from '../history/metadata.js'
import type { ApprovalRef, ApprovalState, ClaimResult, LedgerAnswer, ShownTerms } from '../ledger/ledger.js'
import { failed, type ToolOutcome } from '../outcome.js'
import { audit } from '../scope/audit.js'
import { gateContext, type RunScope } from '../scope/scope.js'
import { readCall } from '../tools/call.js'
import { approvalIdOf } from './answers.js'
import { decidedBy, given } from './decided.js'
import type { IssuedRecords } from './issued.js'
import type { Refusal } from './refusals.js'
import {
  handedOutOutcome,
  interruptedOutcome,
  rejection,
  restoreOutcome,
  settledKind,
} from './stored-outcome.js'
import { verifyCallToken } from './verdicts.js'

/** What becomes of a call that has no result and was not answered by this request. */
export type OpenCallResult =
  | {
      readonly kind: 'result'
      readonly site: CallSite
      readonly outcome: ToolOutcome
      /** The answer that it came of, where the person was asked. */
      readonly decided?: ApprovalDecided | undefined
    }
  /** Still a good question: it is asked again, with its own token. `isAnothers`: nobody who sees it here can answer it. */
  | {
      readonly kind: 'open'
      readonly site: CallSite
      readonly request: ApprovalRequest
      readonly isAnothers: boolean
    }
  /** The provider's to run: it was approved, and has no result yet. */
  | {
      readonly kind: 'forwarded'
      readonly site: CallSite
      readonly decided?: ApprovalDecided | undefined
    }
  /** The client's to run; there is nothing to ask. */
  | { readonly kind: 'client'; readonly site: CallSite }

/**
 * Decides about one open call. None of them runs here, whatever a history says: what was asked stays open or is settled, an
 * ordinary call is closed as cancelled.
 */
export async function resultOfOpenCall(
  scope: RunScope,
  site: CallSite,
  issued: IssuedRecords,
  refusal: Refusal | undefined,
  messages: readonly Message[],
): Promise<OpenCallResult> {
  const own = readOwn(site.call.metadata)
  const known = issued.entryOf(site)
  // without a subject everybody is the same owner: only the id of the approval shows whose question it is
  const entry = scope.owner === null && known?.record.approvalId !== approvalIdOf(site) ? undefined : known
  const token = own.token === undefined ? entry?.record.token : own.token
  const approvalId = entry?.record.approvalId ?? approvalIdOf(site)
  if (token === undefined || approvalId === undefined) return decideUnasked(scope, site, refusal, messages)
  const ref = { owner: scope.owner, threadId: scope.threadId, approvalId }
  const question: Question = { site, issued, ref, scopes: entry?.record.scopes }
  const close = async (
    code: Refusal['code'] | undefined,
    reason?: string,
    known = true,
  ): Promise<OpenCallResult> => {
    const answer: LedgerAnswer =
      code === 'approval-expired' ? { decision: 'expire' } : { decision: 'cancel', code, reason }
    return known ? closeCall(scope, question, answer) : { kind: 'result', site, outcome: rejection(answer) }
  }

  const { function: called } = site.call
  const read = readArguments(called.arguments)
  if (!read.ok) return close('approval-tampered', undefined, entry !== undefined)
  const verified = await verifyCallToken(scope, token, ref, site, read.canonical)
  const isLeft = site.superseded || own.state === 'cancelled'
  // somebody else's question stays open for them wherever it is shown, until whoever shows it goes on without it
  if (!verified.ok && (isLeft || verified.check !== 'oh')) {
    // a token whose time is over is genuine otherwise: what became of its question is told, also long after
    const isKnown = entry !== undefined || verified.code === 'approval-expired'
    return close(refusal?.code ?? verified.code, undefined, isKnown)
  }
  // what was wrong with the answer is what the model is told
  if (refusal?.fate === 'close') return close(refusal.code, refusal.message)
  if (refusal === undefined && isLeft) return close(undefined, MOVED_ON)
  if (refusal !== undefined && site.superseded && refusal.fate === 'as-found') return close(refusal.code)

  const stored = await storedResult(scope, question)
  if (stored !== undefined) return stored
  const ready = await readCall(scope.toolkit, {
    id: site.call.id,
    name: called.name,
    arguments: called.arguments,
    providerExecuted: isProviderExecuted(site.call),
  })
  if (!ready.ok) return close('approval-stale', ready.failure.reason)
  const shown = verified.ok ? entry?.record.shown : shownBefore(own)
  const terms = { ...verified.claims, token: String(token), shown }
  try {
    return {
      kind: 'open',
      site,
      request: describeRequest(scope, ready.call, terms),
      isAnothers: !verified.ok,
    }
  } catch (error) {
    scope.settings.warn(`The request for ${called.name} cannot be described any more.`, error)
    return close('approval-stale')
  }
}

/** What a history says was shown of a question whose record is somebody else's: to differ from it would close the request for them. */
function shownBefore({ approval }: OwnMetadata): ShownTerms | undefined {
  return isRecord(approval) ? { message: asString(approval.message), display: approval.display } : undefined
}

/** A question, the call it is about, and where the ledger's word of it is found. */
export interface Question {
  readonly site: CallSite
  readonly issued: IssuedRecords
  readonly ref: ApprovalRef
  /** What was offered, where that is known. */
  readonly scopes: readonly ApprovalScope[] | undefined
}

/** Settles a question without the person. Where somebody was faster, that is what the call gets. */
export async function closeCall(
  scope: RunScope,
  question: Question,
  closing: LedgerAnswer,
): Promise<OpenCallResult> {
  const { site, ref } = question
  const answer = given(scope, closing, 'server')
  const settled = await closeInLedger(scope, ref, answer)
  if (settled?.status === 'claimed') await auditClosing(scope, question, answer)
  if (settled?.status === 'repeat' || settled?.status === 'conflict' || settled?.status === 'expired') {
    const stored = await storedResult(scope, question)
    if (stored !== undefined) return stored
    if (settled.status === 'conflict') return { kind: 'result', site, outcome: interruptedOutcome() }
  }
  return { kind: 'result', site, outcome: rejection(answer), decided: decided(scope, question, answer) }
}

/** A call that nobody was asked about: the client's own tools are left to it; of any other, whose result was lost, nobody knows whether it ran. */
async function decideUnasked(
  scope: RunScope,
  site: CallSite,
  refusal: Refusal | undefined,
  messages: readonly Message[],
): Promise<OpenCallResult> {
  const closed = (reason: string, code?: string): OpenCallResult => ({
    kind: 'result',
    site,
    outcome: failed('cancelled', reason, code),
  })
  if (refusal !== undefined) return closed('the approval is not valid', refusal.code)
  const { id, function: called } = site.call
  const providerExecuted = isProviderExecuted(site.call)
  const ready = await readCall(scope.toolkit, {
    id,
    name: called.name,
    arguments: called.arguments,
    providerExecuted,
  })
  const why = site.superseded ? MOVED_ON : 'the call was not completed'
  if (!ready.ok) return closed(why)
  const { tool } = ready.call
  if (tool.location !== 'server' && site.superseded) return closed(why)
  const { approvals, warn } = scope.settings
  const gate = await decideGate(ready.call, gateContext(scope, id, messages), {
    policy: approvals.policy,
    warn,
  })
  if (tool.location === 'server') {
    // nobody was asked, so it ran at once, or by a session approval that may have ended since
    const mayHaveRun =
      gate.kind === 'run' || (scope.owner !== null && termsOf(tool).scopes.includes('session'))
    return mayHaveRun ? { kind: 'result', site, outcome: interruptedOutcome() } : closed(why)
  }
  return gate.kind === 'run' ? { kind: 'client', site } : closed('nobody was asked', 'approval-not-found')
}

/** The ledger's own outcome, where the history has lost it. */
async function storedResult(scope: RunScope, question: Question): Promise<OpenCallResult | undefined> {
  const { site, issued, ref } = question
  try {
    const { state } = (await issued.lookup(ref.approvalId)) ?? {}
    if (state?.phase === 'done') return kept(scope, question, state)
    if (state?.phase === 'interrupted') {
      const outcome = interruptedOutcome()
      return { kind: 'result', site, outcome, decided: decided(scope, question, state.answer) }
    }
  } catch (error) {
    scope.settings.warn('The ledger could not be read.', error)
  }
  return undefined
}

function kept(
  scope: RunScope,
  question: Question,
  { answer, outcome }: Extract<ApprovalState, { phase: 'done' }>,
): OpenCallResult {
  const { site } = question
  const from = restoreOutcome(outcome)
  const origin = { site, decided: decided(scope, question, answer) }
  if (from.kind === 'outcome') return { kind: 'result', outcome: from.outcome, ...origin }
  if (isProviderExecuted(site.call)) return { kind: 'forwarded', ...origin }
  // A page has the call, and what it made of it is not here: it may be another page.
  const isLeft = site.superseded || readOwn(site.call.metadata).state === 'cancelled'
  return isLeft ? { kind: 'result', outcome: handedOutOutcome(), ...origin } : { kind: 'client', site }
}

function decided(scope: RunScope, { scopes }: Question, answer: LedgerAnswer): ApprovalDecided {
  return decidedBy(scope, answer, scopes && optionsOf(scope, scopes))
}

async function auditClosing(scope: RunScope, { site, ref }: Question, answer: LedgerAnswer): Promise<void> {
  const names = { approvalId: ref.approvalId, toolCallId: site.call.id, toolName: site.call.function.name }
  const code = answer.decision === 'cancel' ? answer.code : undefined
  await audit(scope, { event: 'claimed', ...names, decision: answer.decision, code, via: 'server' })
  await audit(scope, { event: 'completed', ...names, outcome: settledKind(answer) })
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
