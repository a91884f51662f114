import {
  asString,
  getCountersignMetadata,
  isRecord,
  type Message,
  type Preview,
  readPreview,
} from '@countersign/core'
import { readArguments } from '../encoding/canonical.js'
import { randomId } from '../encoding/ids.js'
import { describeRequest } from '../gate/ask.js'
import { canAsk, decideGate } from '../gate/gate.js'
import { findPermission } from '../gate/grants.js'
import { type CallSite, isProviderExecuted, MOVED_ON, proposedCall } from '../history/history.js'
import type {
  ApprovalRecord,
  ApprovalRef,
  ApprovalScope,
  LedgerAnswer,
  LedgerEntry,
  ShownTerms,
} from '../ledger/ledger.js'
import { failed, type ToolOutcome } from '../outcome.js'
import { gateContext, type RunScope } from '../scope/scope.js'
import type { TokenClaims } from '../tokens/token.js'
import { readCall } from '../tools/call.js'
import { isReserved } from '../tools/toolkit.js'
import { approvalIdOf } from './answers.js'
import { nextOf, requestAgain } from './ask-again.js'
import { auditNames, auditSettled, claimAnswer, firstAnswer } from './claim.js'
import { lookUpLast } from './look-up.js'
import {
  type CallOutcome,
  decidedBy,
  handedOutOutcome,
  interruptedOutcome,
  notClosed,
  outcomeOfAnswer,
  type Refusal,
  restoreOutcome,
  stampAnswer,
  stillRunning,
} from './outcome.js'
import { type IssuedRecords, isReplaced } from './records.js'
import { verifyCallToken, wasShown } from './verify.js'

/**
 * Decides about a call that has no result and was not settled by an answer; `refusal` is that of its answer, if it had one. No call runs
 * here, whatever a history claims: an approval request stays open or is settled, an ordinary call is closed as cancelled.
 */
export async function outcomeOfOpenCall(
  scope: RunScope,
  site: CallSite,
  issued: IssuedRecords,
  refusal: Refusal | undefined,
  messages: readonly Message[],
): Promise<CallOutcome | Refusal> {
  const own = getCountersignMetadata(site.call.metadata)
  const known = issued.entryOf(site)
  // Without a subject everybody is the same owner: only the approval id shows whose approval request it is.
  const isNamed = known?.record.approvalId === approvalIdOf(site) || isReplaced(site, known)
  const entry = scope.owner === null && !isNamed ? undefined : known
  const token = own.token === undefined || isReplaced(site, entry) ? entry?.record.token : own.token
  const approvalId = entry?.record.approvalId ?? approvalIdOf(site)
  if (token === undefined || approvalId === undefined) {
    const isAsked = approvalId !== undefined || isProviderExecuted(site.call) || canAsk(scope)
    return isAsked && !issued.isWhole
      ? notClosed({ approvalId, site })
      : decideUnasked(scope, site, refusal, messages)
  }
  const ref = { owner: scope.owner, threadId: scope.threadId, approvalId }
  const asked: OpenRequest = { site, ref, scopes: entry?.record.scopes }
  const close = async (code: Refusal['code'] | undefined, reason?: string, isKnown = true) => {
    const answer: LedgerAnswer =
      code === 'approval-expired' ? { decision: 'expire' } : { decision: 'cancel', code, reason }
    return isKnown ? closeRequest(scope, asked, answer) : resultOf(site, outcomeOfAnswer(answer))
  }

  const read = readArguments(site.call.function.arguments)
  if (!read.ok) return close('approval-tampered', undefined, entry !== undefined)
  const verified = await verifyCallToken(scope, token, ref, site, read.canonical)
  const isLeft = site.superseded || own.state === 'cancelled'
  if (!verified.ok && verified.check !== 'oh') {
    const isReplaced = verified.check === 'exp' && nextOf(await lookUpLast(scope, ref)) !== undefined
    // Apart from its expiry, an expired token is genuine: the outcome of its request is reported, even much later.
    const isKnown = entry !== undefined || verified.code === 'approval-expired'
    if (verified.check !== 'exp' || !isReplaced || isLeft)
      return close(refusal?.code ?? verified.code, undefined, isKnown)
  }
  // Another user's request stays open for them wherever it is shown, until the conversation that shows it moves on.
  if (!verified.ok && isLeft) return close(refusal?.code ?? verified.code, undefined, entry !== undefined)
  // The model is told what was wrong with the answer.
  if (refusal?.effect === 'close') return close(refusal.code, refusal.message)
  if (refusal === undefined && isLeft) return close(undefined, MOVED_ON)
  if (refusal !== undefined && site.superseded && refusal.effect === 'as-found') return close(refusal.code)

  const ready = await readCall(scope, proposedCall(site))
  let last = await lookUpLast(scope, ref)
  const next = nextOf(last)
  if (next !== undefined && ready.ok) {
    // The run that settled it has not made the new request yet, or has died.
    const replaced = { claims: verified.claims, record: recordOf(last), next, messages }
    const asking = await requestAgain(scope, ready.call, replaced)
    if (asking.ok) return { kind: 'open', site, request: asking.request, isAnothers: false }
    last = await lookUpLast(scope, ref)
  }
  const stored = endedOutcome(scope, asked, last)
  if (stored !== undefined) return stored
  // Without the model, as in recovery, nothing needs the call to be closed: another process may have its tool.
  const isOthers = scope.settings.maxSteps === 0 && scope.toolkit.get(site.call.function.name) === undefined
  if (!ready.ok && isOthers) return { kind: 'client', site }
  if (!ready.ok) return close('approval-stale', ready.failure.reason)
  const latest = recordOf(last)
  const { shown, preview, previous } = (verified.ok && entry?.record) || {
    shown: verified.ok ? undefined : shownBefore(own),
    preview: await previewBefore(scope, own, verified.claims),
    previous: undefined,
  }
  const mandates = verified.ok ? entry?.record.mandates : undefined
  const terms = { ...verified.claims, token: String(token), shown, mandates, preview, previous }
  try {
    const isLatest = latest === undefined || latest.approvalId === approvalId
    const request = describeRequest(scope, ready.call, isLatest ? terms : latest)
    return { kind: 'open', site, request, isAnothers: !verified.ok && isLatest }
  } catch (error) {
    scope.settings.warn(`The request for ${ready.call.name} cannot be described any more.`, error)
    return close('approval-stale')
  }
}

function recordOf(entry: LedgerEntry | undefined | 'unavailable'): ApprovalRecord | undefined {
  return entry === undefined || entry === 'unavailable' ? undefined : entry.record
}

function resultOf(site: CallSite, outcome: ToolOutcome): CallOutcome {
  return { kind: 'result', site, outcome }
}

/** What a history says was shown, for a request whose record belongs to another user: a different text would close the request for them. */
function shownBefore({ approval }: Record<string, unknown>): ShownTerms | undefined {
  return isRecord(approval) ? { message: asString(approval.message), display: approval.display } : undefined
}

/** The preview in a history, for a request whose record is lost or belongs to another user: only the one that the token binds counts. */
async function previewBefore(
  scope: RunScope,
  { approval }: Record<string, unknown>,
  claims: TokenClaims,
): Promise<Preview | undefined> {
  const preview = isRecord(approval) ? approval.preview : undefined
  const isBound = isRecord(preview) && (await wasShown(scope, { preview }, claims, claims.previewHash))
  return isBound ? readPreview(preview) : undefined
}

/**
 * Decides about a call without an approval request. It may have run, or been handed to a page, and its result was lost: what its tool requires
 * now may differ from what it required then, and the tool may have belonged to one step. A call has certainly not run if no tool could have
 * taken it: its arguments are no JSON, or its name is reserved. A client tool that still needs no approval is left to the page, unless a
 * standing denial may refuse it.
 */
async function decideUnasked(
  scope: RunScope,
  site: CallSite,
  refusal: Refusal | undefined,
  messages: readonly Message[],
): Promise<CallOutcome> {
  const closed = (reason: string, code?: string) => resultOf(site, failed('cancelled', reason, code))
  if (refusal !== undefined) return closed('the approval is not valid', refusal.code)
  const ready = await readCall(scope, proposedCall(site))
  const { name, arguments: text } = site.call.function
  if (isReserved(name) || !readArguments(text).ok)
    return closed(site.superseded ? MOVED_ON : 'the call was not completed')
  if (!ready.ok) return resultOf(site, interruptedOutcome())
  const { location } = ready.call.tool
  const context = gateContext(scope, site.call.id, messages)
  const gate = await decideGate(scope, ready.call, context)
  if (location === 'client' && gate.kind === 'run' && !site.superseded) {
    const { kind } = await findPermission(scope, ready.call, 'denial')
    if (kind === 'none') return { kind: 'client', site }
  }
  if (location !== 'provider')
    return resultOf(site, location === 'server' ? interruptedOutcome() : handedOutOutcome())
  return site.superseded ? closed(MOVED_ON) : closed('not requested', 'approval-not-found')
}

/** An approval request, its call, and the scopes that it offers, if known. */
export interface OpenRequest {
  readonly site: CallSite
  readonly ref: ApprovalRef
  readonly scopes: readonly ApprovalScope[] | undefined
}

/**
 * Settles an approval request without the user. If somebody else settled it first, the call gets that outcome, once it is known: until
 * then nobody may be told that it was interrupted, because it may still start. Once the user has moved on, nobody waits for it.
 */
export async function closeRequest(
  scope: RunScope,
  asked: OpenRequest,
  closing: LedgerAnswer,
): Promise<CallOutcome | Refusal> {
  const { site, ref, scopes } = asked
  const answer = stampAnswer(scope, closing, 'server')
  const status = await closeInLedger(scope, ref, answer)
  // It may have run, and if not, it could still be approved: nobody is told that it was cancelled.
  if (status === undefined || status === 'full') return notClosed({ approvalId: ref.approvalId, site })
  // A record is kept until its request has expired: the ledger has lost it.
  if (status === 'not-issued' && answer.decision !== 'expire') return resultOf(site, interruptedOutcome())
  if (status === 'claimed') {
    const code = answer.decision === 'cancel' ? answer.code : undefined
    const step = { ...auditNames({ ref, call: site.call }), decision: answer.decision, code, via: 'server' }
    await auditSettled(scope, step, answer)
  }
  const first = status === 'conflict' && !site.superseded ? await firstAnswer(scope, ref) : undefined
  if (first !== undefined) await claimAnswer(scope, ref, first.answer, randomId('holder_'))
  if (status === 'repeat' || status === 'conflict' || status === 'expired') {
    const last = await lookUpLast(scope, ref)
    const isReplaced = nextOf(last) !== undefined && !site.superseded
    const stored = isReplaced ? undefined : endedOutcome(scope, asked, last)
    if (stored !== undefined) return stored
    // The call is still being carried out, or the user is asked about it again.
    if (first !== undefined && last !== 'unavailable')
      return stillRunning({ approvalId: ref.approvalId, site })
    if (status === 'conflict') return resultOf(site, interruptedOutcome())
  }
  return { kind: 'result', site, outcome: outcomeOfAnswer(answer), decided: decidedBy(scope, answer, scopes) }
}

/** Settles a request that can no longer be answered; undefined if the ledger can't be reached. */
async function closeInLedger({ settings }: RunScope, ref: ApprovalRef, answer: LedgerAnswer) {
  const { ledger, leaseMs } = settings.approvals
  try {
    return (await ledger.claim(ref, answer, randomId('holder_'), leaseMs)).status
  } catch (error) {
    settings.warn('A request could not be settled in the ledger.', error)
    return undefined
  }
}

function endedOutcome(
  scope: RunScope,
  { site, scopes }: OpenRequest,
  entry: LedgerEntry | undefined | 'unavailable',
): CallOutcome | undefined {
  if (entry === undefined || entry === 'unavailable') return undefined
  const { state } = entry
  if (state.phase !== 'done' && state.phase !== 'interrupted') return undefined
  const decided = decidedBy(scope, state.answer, scopes)
  const stored = state.phase === 'done' ? state.outcome : ({ type: 'interrupted' } as const)
  if (stored.type !== 'handed-out') return { kind: 'result', site, outcome: restoreOutcome(stored), decided }
  if (isProviderExecuted(site.call)) return { kind: 'forwarded', site, decided }
  // A page has the call, and this history lacks its result: this may be another page.
  const isLeft = site.superseded || getCountersignMetadata(site.call.metadata).state === 'cancelled'
  return isLeft ? { kind: 'result', site, outcome: handedOutOutcome(), decided } : { kind: 'client', site }
}
