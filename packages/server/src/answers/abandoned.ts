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

/** The outcome of a call that has no result and was not answered by this request. */
export type OpenCallResult =
  | {
      readonly kind: 'result'
      readonly site: CallSite
      readonly outcome: ToolOutcome
      /** The answer that led to it, if approval was requested. */
      readonly decided?: ApprovalDecided | undefined
    }
  /** Still a valid approval request: it is sent again, with its own token. `isAnothers`: no user who sees it here can answer it. */
  | {
      readonly kind: 'open'
      readonly site: CallSite
      readonly request: ApprovalRequest
      readonly isAnothers: boolean
    }
  /** Left to the provider: it was approved, and has no result yet. */
  | {
      readonly kind: 'forwarded'
      readonly site: CallSite
      readonly decided?: ApprovalDecided | undefined
    }
  /** Left to the client; it needs no approval. */
  | { readonly kind: 'client'; readonly site: CallSite }

/**
 * Decides about one open call. None runs here, whatever a history claims: an approval request stays open or is settled, an
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
  // Without a subject everybody is the same owner: only the approval id shows whose approval request it is.
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
  // Another user's request stays open for them wherever it is shown, until the conversation that shows it moves on.
  if (!verified.ok && (isLeft || verified.check !== 'oh')) {
    // Apart from its expiry, an expired token is genuine: the outcome of its request is reported, even much later.
    const isKnown = entry !== undefined || verified.code === 'approval-expired'
    return close(refusal?.code ?? verified.code, undefined, isKnown)
  }
  // The model is told what was wrong with the answer.
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

/** What a history says was shown, for a request whose record belongs to another user: a different text would close the request for them. */
function shownBefore({ approval }: OwnMetadata): ShownTerms | undefined {
  return isRecord(approval) ? { message: asString(approval.message), display: approval.display } : undefined
}

/** An approval request, its call, and where its ledger entry is found. */
export interface Question {
  readonly site: CallSite
  readonly issued: IssuedRecords
  readonly ref: ApprovalRef
  /** The offered scopes, if known. */
  readonly scopes: readonly ApprovalScope[] | undefined
}

/** Settles an approval request without the user. If somebody else settled it first, the call gets that outcome. */
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

/** Decides about a call without an approval request: a client tool is left to the client; any other may have run and lost its result. */
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
    // Approval was not requested, so the call ran at once, or by a session grant that may have ended since.
    const mayHaveRun =
      gate.kind === 'run' || (scope.owner !== null && termsOf(tool).scopes.includes('session'))
    return mayHaveRun ? { kind: 'result', site, outcome: interruptedOutcome() } : closed(why)
  }
  return gate.kind === 'run' ? { kind: 'client', site } : closed('not requested', 'approval-not-found')
}

/** The ledger's outcome, if the history has lost it. */
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
  // A page has the call, and this history lacks its result: this may be another page.
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

/** Settles a request that can no longer be answered. A request that the ledger does not know needs no settling. */
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
