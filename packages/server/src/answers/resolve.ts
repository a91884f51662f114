import type { ApprovalDecided, Message } from '@countersign/core'
import { randomId } from '../encoding/ids.js'
import { isProviderExecuted } from '../history/history.js'
import { claimAndWait } from '../ledger/claim-and-wait.js'
import type { ClaimResult, LedgerAnswer, LedgerEntry } from '../ledger/ledger.js'
import { audit } from '../scope/audit.js'
import type { RunScope } from '../scope/scope.js'
import { isConfirmed } from './confirm.js'
import { decidedFor } from './decided.js'
import { prepareVerdicts, type Settlement } from './prepare.js'
import type { Refusal } from './refusals.js'
import type { Resolution } from './resolution.js'
import { runClaimed } from './run-claimed.js'
import {
  handedOutOutcome,
  interruptedOutcome,
  type Restored,
  rejection,
  restoreOutcome,
  settledKind,
} from './stored-outcome.js'
import { LEDGER_UNAVAILABLE, NO_SUCH_QUESTION, type VerifiedVerdict } from './verdicts.js'

/**
 * Carries out verified verdicts before the model is called: all are validated, then each call is claimed right before its own
 * execution. Yields approved calls first, then denied ones, each in the order of the calls.
 *
 * @throws ToolkitRequiredError, ToolNotFoundError before anything runs.
 */
export async function* resolveVerdicts(
  scope: RunScope,
  verdicts: readonly VerifiedVerdict[],
  messages: readonly Message[],
): AsyncGenerator<Resolution> {
  const settlements = await prepareVerdicts(scope, verdicts, messages)
  const approves = ({ answer }: { readonly answer: LedgerAnswer }) => answer.decision === 'approve'
  const accepted = settlements.filter((one) => one.kind !== 'refuse' && approves(one))
  const others = settlements.filter((one) => one.kind === 'refuse' || !approves(one))
  const work = [...accepted, ...others].map((one) => scope.limit(() => settle(scope, one, messages)))
  // A failure is thrown in its turn; without this it would be unhandled until then.
  for (const resolution of work) resolution.catch(() => {})
  for (const resolution of work) yield await resolution
}

async function settle(
  scope: RunScope,
  settlement: Settlement,
  messages: readonly Message[],
): Promise<Resolution> {
  const { verdict } = settlement
  const { site } = verdict
  // What can't be verified now settles nothing. Whatever would settle the request, even an invalid answer, must be confirmed.
  if (settlement.kind === 'refuse' && settlement.refusal.fate === 'open')
    return { kind: 'refused', site, refusal: settlement.refusal }
  if (scope.stop.aborted && settlement.kind !== 'refuse') return stopped(verdict)
  if (settlement.kind !== 'repeat' && !(await isConfirmed(scope, settlement)))
    return refused(verdict, 'approval-not-yours', 'The answer was not confirmed.', 'open')
  if (settlement.kind === 'refuse') return { kind: 'refused', site, refusal: settlement.refusal }
  if (scope.stop.aborted) return stopped(verdict)
  const holder = randomId('holder_')
  const { answer } = settlement
  const claim = await claimVerdict(scope, verdict, answer, holder)
  if (claim.status === 'claimed') {
    const told = { ...auditNames(verdict), ...auditAnswer(settlement), via: verdict.via }
    if (settlement.kind === 'run')
      return runClaimed(scope, { ...settlement, holder, revision: claim.revision, messages, told })
    await audit(scope, { event: 'claimed', ...told })
    await audit(scope, { event: 'completed', ...auditNames(verdict), outcome: settledKind(answer) })
    return { kind: 'result', site, outcome: rejection(answer), decided: decidedFor(scope, verdict, answer) }
  }
  if (claim.status === 'interrupted' && settlement.kind === 'run')
    return reclaim(scope, settlement, holder, messages)
  return unclaimed(scope, verdict, claim)
}

/** A stop before the claim leaves the answer unused: it can be sent again. */
function stopped(verdict: VerifiedVerdict): Resolution {
  return refused(verdict, 'ledger-unavailable', 'The run was stopped before the answer was used.', 'open')
}

function auditNames({ approvalId, site }: VerifiedVerdict) {
  return { approvalId, toolCallId: site.call.id, toolName: site.call.function.name }
}

function auditAnswer({ answer, verdict }: Exclude<Settlement, { kind: 'refuse' }>) {
  if (answer.decision !== 'approve') return { decision: answer.decision, arguments: verdict.canonical }
  const edited = answer.arguments !== undefined
  return {
    decision: answer.decision,
    scope: answer.scope,
    edited,
    arguments: answer.arguments ?? verdict.canonical,
  }
}

const STILL_RUNNING =
  'An approved call is still running, and the conversation continues once it has ended. Try again later.'

type Claim = ClaimResult | { readonly status: 'unavailable' }

async function claimVerdict(
  scope: RunScope,
  { ref }: VerifiedVerdict,
  answer: LedgerAnswer,
  holder: string,
): Promise<Claim> {
  const { approvals, warn } = scope.settings
  const { leaseMs, waitMs, ledger } = approvals
  try {
    return await claimAndWait(ledger, ref, answer, holder, { leaseMs, waitMs, signal: scope.stop })
  } catch (error) {
    warn('The ledger could not be reached.', error)
    return { status: 'unavailable' }
  }
}

async function unclaimed(
  scope: RunScope,
  verdict: VerifiedVerdict,
  claim: Exclude<Claim, { status: 'claimed' }>,
): Promise<Resolution> {
  switch (claim.status) {
    case 'repeat':
      return repeated(scope, verdict, restoreOutcome(claim.outcome))
    case 'interrupted':
      return interrupted(scope, verdict)
    case 'in-progress':
      return refused(verdict, 'call-running', STILL_RUNNING, 'open')
    case 'unavailable':
      return refused(verdict, 'ledger-unavailable', LEDGER_UNAVAILABLE, 'open')
    case 'conflict':
      return contradiction(scope, verdict, claim.settled)
    case 'expired':
      return refused(verdict, 'approval-expired', 'The time to answer has passed; ask again.', 'close')
    case 'not-issued':
      return refused(verdict, 'approval-not-found', NO_SUCH_QUESTION, 'close')
    default:
      return claim satisfies never
  }
}

async function interrupted(scope: RunScope, verdict: VerifiedVerdict): Promise<Resolution> {
  const decided = await firstDecided(scope, verdict)
  return { kind: 'result', site: verdict.site, outcome: interruptedOutcome(), decided }
}

/** A repeated answer gets the first one's outcome. A client tool goes only to the page that had it first; another page is too late. */
async function repeated(scope: RunScope, verdict: VerifiedVerdict, from: Restored): Promise<Resolution> {
  const { site } = verdict
  const decided = await firstDecided(scope, verdict)
  if (from.kind === 'outcome') return { kind: 'result', site, outcome: from.outcome, decided }
  if (isProviderExecuted(site.call)) return { kind: 'forwarded', site, decided }
  const { state } = (await lookUp(scope, verdict)) ?? {}
  if (state?.phase !== 'done') return refused(verdict, 'ledger-unavailable', LEDGER_UNAVAILABLE, 'open')
  const first = 'sentIn' in state.answer ? state.answer.sentIn : undefined
  if (first === verdict.sentIn)
    return { kind: 'handed-out', site, input: JSON.parse(from.arguments), decided, isAgain: true }
  const refusal = refusalOf(verdict, 'approval-conflict', HANDED_OUT, 'close')
  return { kind: 'result', site, outcome: handedOutOutcome(), decided, refusal }
}

const HANDED_OUT = 'This request was answered before, on another page, which runs the call.'

/** Who gave the answer in the ledger, and when. Undefined if the ledger can't be read now: the result is reported anyway. */
async function firstDecided(scope: RunScope, verdict: VerifiedVerdict): Promise<ApprovalDecided | undefined> {
  const { state } = (await lookUp(scope, verdict)) ?? {}
  return state === undefined || state.phase === 'issued'
    ? undefined
    : decidedFor(scope, verdict, state.answer)
}

async function lookUp(scope: RunScope, { ref }: VerifiedVerdict): Promise<LedgerEntry | undefined> {
  try {
    return await scope.settings.approvals.ledger.lookup(ref)
  } catch (error) {
    scope.settings.warn('The ledger could not be read.', error)
    return undefined
  }
}

/**
 * Another answer came first: the user is told, and the conversation gets that answer's outcome. While it is still being carried out,
 * the outcome is unknown, so this waits for it like a repeat.
 */
async function contradiction(
  scope: RunScope,
  verdict: VerifiedVerdict,
  settled: LedgerAnswer['decision'],
): Promise<Resolution> {
  const { site } = verdict
  const { state } = (await lookUp(scope, verdict)) ?? {}
  if (state === undefined || state.phase === 'issued')
    return refused(verdict, 'ledger-unavailable', LEDGER_UNAVAILABLE, 'open')
  const message = `This request was answered before (${settled}).`
  const conflict = refusalOf(verdict, 'approval-conflict', message, 'close')
  // If the policy blocked this user's approval, that is no other answer: the same approval gets the same outcome.
  const isOwn = state.answer.by === 'policy' && verdict.decision === 'approve'
  const told = {
    site,
    decided: decidedFor(scope, verdict, state.answer),
    ...(!isOwn && { refusal: conflict }),
  }
  const first = await claimVerdict(scope, verdict, state.answer, randomId('holder_'))
  if (first.status === 'interrupted') return { kind: 'result', outcome: interruptedOutcome(), ...told }
  if (first.status === 'in-progress') return refused(verdict, 'call-running', STILL_RUNNING, 'open')
  if (first.status !== 'repeat') return refused(verdict, 'ledger-unavailable', LEDGER_UNAVAILABLE, 'open')
  const from = restoreOutcome(first.outcome)
  const outcome = from.kind === 'outcome' ? from.outcome : handedOutOutcome()
  return { kind: 'result', outcome, ...told }
}

async function reclaim(
  scope: RunScope,
  settlement: Extract<Settlement, { kind: 'run' }>,
  holder: string,
  messages: readonly Message[],
): Promise<Resolution> {
  const { ledger, leaseMs } = scope.settings.approvals
  const { ref } = settlement.verdict
  try {
    const again = settlement.call.tool.idempotent ? await ledger.reclaim(ref, holder, leaseMs) : undefined
    if (again?.status === 'claimed')
      return runClaimed(scope, { ...settlement, holder, revision: again.revision, messages })
  } catch (error) {
    scope.settings.warn('The ledger could not be reached.', error)
  }
  return interrupted(scope, settlement.verdict)
}

function refused(
  verdict: VerifiedVerdict,
  code: Refusal['code'],
  message: string,
  fate: Refusal['fate'],
): Resolution {
  return { kind: 'refused', site: verdict.site, refusal: refusalOf(verdict, code, message, fate) }
}

function refusalOf(
  { approvalId, site }: VerifiedVerdict,
  code: Refusal['code'],
  message: string,
  fate: Refusal['fate'],
): Refusal {
  return { approvalId, site, code, message, fate }
}
