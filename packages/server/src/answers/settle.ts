import type { Message } from '@countersign/core'
import { unlessLeft } from '../encoding/hooks.js'
import { randomId } from '../encoding/ids.js'
import { auditGranted, storeDenial, takeDenialsBack } from '../gate/grants.js'
import { isProviderExecuted } from '../history/history.js'
import { outcomeOf } from '../history/model-messages.js'
import type { ClaimResult, LedgerAnswer, StoredOutcome } from '../ledger/ledger.js'
import { failed, isSuccess, type ToolOutcome } from '../outcome.js'
import type { RunScope } from '../scope/scope.js'
import { auditNames, auditSettled, type ClaimedOrNot, claimAnswer, firstAnswer } from './claim.js'
import { isConfirmed } from './confirm.js'
import {
  type CallOutcome,
  decidedBy,
  type EndedOutcome,
  handedOutOutcome,
  outcomeOfAnswer,
  outcomeOfUnstarted,
  type Refusal,
  restoreOutcome,
  stillRunning,
  type Unstarted,
} from './outcome.js'
import { prepareVerdicts, refusalOf, type Settlement } from './prepare.js'
import { runClaimed } from './run-claimed.js'
import { inTurn } from './turn.js'
import { LEDGER_UNAVAILABLE, NO_SUCH_REQUEST, type VerifiedVerdict } from './verify.js'

/**
 * Carries out verified verdicts before the model is called: all are validated, then each call is claimed right before its own
 * execution. Yields approved calls first, then denied ones, each in the order of the calls. Nothing for the repeated answer to a request
 * that was replaced: the call belongs to the later request.
 *
 * @throws ToolkitRequiredError, ToolNotFoundError, CountersignError `thread-full` before anything runs.
 */
export async function* settleVerdicts(
  scope: RunScope,
  verdicts: readonly VerifiedVerdict[],
  messages: readonly Message[],
): AsyncGenerator<CallOutcome | Refusal> {
  const settlements = await prepareVerdicts(scope, verdicts, messages).catch(unlessLeft)
  if (settlements === undefined) return yield* verdicts.map(stopped)
  if (settlements.some(({ kind }) => kind === 'run')) await scope.keepRoom?.()
  const isApproval = (one: Settlement) => one.kind !== 'refuse' && one.answer.decision === 'approve'
  const ordered = [...settlements.filter(isApproval), ...settlements.filter((one) => !isApproval(one))]
  const work = ordered.map((one) => {
    const begin = () => scope.limit(() => settle(scope, one, messages))
    if (one.kind !== 'run' || one.call.tool.preview === undefined) return begin()
    // An earlier attempt of the call, which hangs, may be what it would wait for.
    return scope.turn(() => (one.mayHaveRun ? begin() : inTurn(scope, begin)))
  })
  // A failure is thrown in its turn; without this it would be unhandled until then.
  for (const outcome of work) outcome.catch(() => {})
  for (const outcome of work) {
    const ended = await outcome
    if (ended !== undefined) yield ended
  }
}

async function settle(
  scope: RunScope,
  settlement: Settlement,
  messages: readonly Message[],
): Promise<CallOutcome | Refusal | undefined> {
  const { kind, verdict } = settlement
  const { site, claims } = verdict
  // What can't be verified now settles nothing. Whatever would settle the request, even an invalid answer, must be confirmed.
  if (kind === 'refuse' && settlement.refusal.effect === 'open') return settlement.refusal
  if (scope.stop.aborted && kind !== 'refuse') return stopped(verdict)
  const isAccepted = kind === 'repeat' || (await isConfirmed(scope, settlement).catch(unlessLeft))
  if (isAccepted === undefined) return stopped(verdict)
  if (!isAccepted) return refusalOf(verdict, 'approval-not-yours', 'The answer was not confirmed.', 'open')
  const unstarted = settlement.mayHaveRun ? whyNotAgain(settlement) : undefined
  if (unstarted !== undefined) return interrupted(scope, verdict, outcomeOfUnstarted(unstarted, true))
  if (kind === 'refuse') return settlement.refusal
  if (scope.stop.aborted) return stopped(verdict)
  const holder = randomId('holder_')
  const { answer, record } = settlement
  const chosen = kind === 'reject' ? settlement.denial : undefined
  const denial = record && chosen && (await storeDenial(scope, record, chosen, reasonOf(answer)))
  if (denial === 'full') return refusalOf(verdict, 'approval-mandate-refused', NO_ROOM, 'open')
  if (denial === 'failed') return refusalOf(verdict, 'ledger-unavailable', NOT_STORED, 'open')
  const claim = await claimAnswer(scope, verdict.ref, answer, holder)
  if (claim.status === 'claimed') {
    const { revision } = claim
    // Of an earlier answer to this request, which was lost before it counted.
    if (record?.mandates?.offers.some(({ decide }) => decide === 'deny'))
      await takeDenialsBack(scope, record, { except: denial })
    const step = { ...auditNames({ ref: verdict.ref, call: site.call }), ...auditAnswer(verdict, answer) }
    if (kind === 'run')
      return runClaimed(scope, { ...settlement, holder, revision, messages, mayHaveRun: false, step })
    await auditSettled(scope, step, answer)
    if (denial !== undefined) await auditGranted(scope, denial)
    const decided = decidedBy(scope, answer, claims.scopes)
    return { kind: 'result', site, outcome: outcomeOfAnswer(answer), decided }
  }
  if (record && denial && VOID.includes(claim.status)) await takeDenialsBack(scope, record, { only: denial })
  if (claim.status === 'interrupted' && kind === 'run') return reclaim(scope, settlement, holder, messages)
  return settledBefore(scope, verdict, claim)
}

/** How a claim ends if another answer counts. */
const VOID: readonly ClaimedOrNot['status'][] = ['conflict', 'expired', 'not-issued']

const NO_ROOM = 'There is no room for another standing denial: revoke some, or deny this call alone.'
const NO_ROOM_FOR_EDITS =
  'The ledger has no room for these edits now: shorten them or the reason, approve the call without edits, or deny it.'
const NOT_STORED = 'The standing denial could not be stored: send the answer again.'

function reasonOf(answer: LedgerAnswer): string | undefined {
  return 'reason' in answer ? answer.reason : undefined
}

/** Why a call that may have run can't be tried again, known before it is claimed again. */
function whyNotAgain(settlement: Settlement): Unstarted | undefined {
  if (settlement.kind === 'refuse' && settlement.because !== undefined)
    return { why: 'stale', because: settlement.because, code: 'approval-stale' }
  if (settlement.kind === 'reject' && settlement.answer.by === 'policy' && 'reason' in settlement.answer)
    return { why: 'forbidden', reason: settlement.answer.reason }
  return undefined
}

/** A stop before the claim leaves the answer unused: it can be sent again. */
function stopped(verdict: VerifiedVerdict): Refusal {
  return refusalOf(verdict, 'ledger-unavailable', 'The run was stopped before the answer was used.', 'open')
}

function unavailable(verdict: VerifiedVerdict): Refusal {
  return refusalOf(verdict, 'ledger-unavailable', LEDGER_UNAVAILABLE, 'open')
}

function auditAnswer({ canonical, via }: VerifiedVerdict, answer: LedgerAnswer) {
  const { decision } = answer
  if (decision !== 'approve') return { decision, arguments: canonical, via }
  const edited = answer.arguments !== undefined
  return { decision, scope: answer.scope, edited, arguments: answer.arguments ?? canonical, via }
}

/** The outcome of an answer that could not be claimed: the request was answered before, or can't be answered. */
async function settledBefore(
  scope: RunScope,
  verdict: VerifiedVerdict,
  claim: Exclude<ClaimedOrNot, { status: 'claimed' }>,
): Promise<CallOutcome | Refusal | undefined> {
  switch (claim.status) {
    case 'repeat':
      return repeated(scope, verdict, claim)
    case 'interrupted':
      return interrupted(scope, verdict)
    case 'in-progress':
      return stillRunning(verdict)
    case 'unavailable':
      return unavailable(verdict)
    case 'conflict':
      return contradiction(scope, verdict, claim.settled)
    case 'expired':
      return refusalOf(verdict, 'approval-expired', 'The time to answer has passed; ask again.', 'close')
    case 'not-issued':
      return refusalOf(verdict, 'approval-not-found', NO_SUCH_REQUEST, 'close')
    case 'full':
      return refusalOf(verdict, 'approval-edit-invalid', NO_ROOM_FOR_EDITS, 'open')
    default:
      return claim satisfies never
  }
}

function isReplacement(stored: StoredOutcome | { readonly type: 'interrupted' }): boolean {
  return stored.type === 'cancelled' && stored.next !== undefined
}

/** A result is reported even if the ledger can't tell now who gave the answer. */
async function interrupted(
  scope: RunScope,
  verdict: VerifiedVerdict,
  stored: EndedOutcome = { type: 'interrupted' },
): Promise<CallOutcome> {
  const { site, claims } = verdict
  const first = await firstAnswer(scope, verdict.ref)
  const decided = first && decidedBy(scope, first.answer, claims.scopes)
  return { kind: 'result', site, outcome: restoreOutcome(stored), decided }
}

/** A repeated answer gets the first one's outcome. A client tool goes only to the page that had it first; another page is too late. */
async function repeated(
  scope: RunScope,
  verdict: VerifiedVerdict,
  { outcome: stored }: Extract<ClaimResult, { status: 'repeat' }>,
): Promise<CallOutcome | Refusal | undefined> {
  if (isReplacement(stored)) return undefined
  const { site, claims } = verdict
  const first = await firstAnswer(scope, verdict.ref)
  const decided = first && decidedBy(scope, first.answer, claims.scopes)
  if (stored.type !== 'handed-out')
    return { kind: 'result', site, outcome: restored(verdict, stored), decided }
  if (isProviderExecuted(site.call)) return { kind: 'forwarded', site, decided }
  if (first?.phase !== 'done') return unavailable(verdict)
  const sentIn = 'sentIn' in first.answer ? first.answer.sentIn : undefined
  if (sentIn === verdict.sentIn)
    return { kind: 'handed-out', site, input: JSON.parse(stored.arguments), decided, isAgain: true }
  // The page has run it, and has sent what came of it.
  if (site.result !== undefined) return undefined
  const refusal = refusalOf(verdict, 'approval-conflict', HANDED_OUT, 'close')
  return { kind: 'result', site, outcome: handedOutOutcome(), decided, refusal }
}

/** A stored outcome. The conversation, or the same answer, may still have a reason for which the ledger had no room. */
function restored({ site, decision, reason }: VerifiedVerdict, stored: EndedOutcome): ToolOutcome {
  const kept = restoreOutcome(stored)
  if (isSuccess(kept) || kept.reason !== undefined) return kept
  const said = site.result && outcomeOf(site.result)
  if (said?.kind === kept.kind)
    return failed(kept.kind, 'reason' in said ? said.reason : undefined, kept.code)
  return decision === 'deny' && kept.kind === 'denied' ? failed(kept.kind, reason, kept.code) : kept
}

const HANDED_OUT = 'This request was answered before, on another page, which runs the call.'

/**
 * Another answer came first: the user is told, and the conversation gets that answer's outcome. While it is still being carried out,
 * the outcome is unknown, so this waits for it like a repeat.
 */
async function contradiction(
  scope: RunScope,
  verdict: VerifiedVerdict,
  settled: LedgerAnswer['decision'],
): Promise<CallOutcome | Refusal | undefined> {
  const { site, claims } = verdict
  const first = await firstAnswer(scope, verdict.ref)
  if (first === undefined) return unavailable(verdict)
  const again = await claimAnswer(scope, verdict.ref, first.answer, randomId('holder_'))
  if (again.status === 'in-progress') return stillRunning(verdict)
  if (again.status !== 'repeat' && again.status !== 'interrupted') return unavailable(verdict)
  const stored = again.status === 'repeat' ? again.outcome : ({ type: 'interrupted' } as const)
  const message = `This request was answered before (${settled}).`
  const refusal = refusalOf(verdict, 'approval-conflict', message, 'close')
  if (isReplacement(stored)) return site.result === undefined ? replacedFirst(verdict) : refusal
  const outcome = stored.type === 'handed-out' ? handedOutOutcome() : restored(verdict, stored)
  const decided = decidedBy(scope, first.answer, claims.scopes)
  // If the policy blocked this user's approval, that is no other answer: the same approval gets the same outcome.
  if (first.answer.by === 'policy' && verdict.decision === 'approve')
    return { kind: 'result', site, outcome, decided }
  // Only the page that ran a client tool knows what came of it.
  if (stored.type === 'handed-out' && site.result !== undefined) return refusal
  return { kind: 'result', site, outcome, decided, refusal }
}

/**
 * The request was approved, and replaced because its preview had changed. Another approval leads to the request that replaced it, but whoever
 * refuses the call must know that it can still be approved. Once the user has moved on, both are closed.
 */
function replacedFirst(verdict: VerifiedVerdict): Refusal | undefined {
  if (verdict.decision === 'approve' || verdict.site.superseded) return undefined
  return refusalOf(verdict, 'approval-conflict', REPLACED, 'open')
}

const REPLACED =
  'This request was approved before. What the call would do had changed, so a new request has replaced it: answer that one.'

async function reclaim(
  scope: RunScope,
  settlement: Extract<Settlement, { kind: 'run' }>,
  holder: string,
  messages: readonly Message[],
): Promise<CallOutcome | Refusal | undefined> {
  const { ledger, leaseMs } = scope.settings.approvals
  const { verdict, call } = settlement
  try {
    const again = call.tool.idempotent ? await ledger.reclaim(verdict.ref, holder, leaseMs) : undefined
    if (again?.status === 'claimed')
      return runClaimed(scope, {
        ...settlement,
        // The first one: what it has granted counts from then.
        answer: again.answer,
        holder,
        revision: again.revision,
        messages,
        mayHaveRun: true,
      })
  } catch (error) {
    scope.settings.warn('The ledger could not be reached.', error)
  }
  return interrupted(scope, verdict)
}
