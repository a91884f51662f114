import { byteLength, sha256 } from '../encoding/bytes.js'
import {
  ANSWERED_KEPT_MS,
  type ApprovalRecord,
  type ApprovalState,
  CLOCK_SKEW_MS,
  type ClaimResult,
  type CompleteResult,
  type LedgerAnswer,
  type LedgerEntry,
  MAX_OUTCOME_BYTES,
  MAX_REASON_LENGTH,
  NEVER,
  OUTCOME_KEPT_MS,
  type ReclaimResult,
  type RenewResult,
  type StoredOutcome,
  type ToolOutcome,
} from './ledger.js'

/** A decision about one row: the result and, if the row changes, its next state. */
export interface RowStep<Result> {
  readonly result: Result
  readonly state?: ApprovalState | undefined
}

/** The state at `now`: a claim whose lease has expired is interrupted. */
export function stateAt(state: ApprovalState, now: number): ApprovalState {
  if (state.phase !== 'claimed' || now < state.leaseUntil) return state
  const { answer, holder, revision } = state
  return { phase: 'interrupted', answer, holder, revision }
}

/**
 * How long a row must be kept. A running call is kept past its expiry, as long as its lease holds. What was approved or denied is kept for a
 * day after the answer: how it ended may not have arrived. A request that never expires is dropped {@link ANSWERED_KEPT_MS} after its answer:
 * repeats are then refused, as for any request that the ledger doesn't know.
 */
export function keptUntil({ record, state }: LedgerEntry): number {
  const { at: answeredAt, decision } = state.phase === 'issued' ? {} : state.answer
  const letGo = record.expiresAt >= NEVER && answeredAt !== undefined
  const until = letGo ? answeredAt + ANSWERED_KEPT_MS : record.expiresAt + CLOCK_SKEW_MS
  const isDecided = decision === 'approve' || decision === 'deny'
  const told = isDecided && answeredAt !== undefined ? answeredAt + OUTCOME_KEPT_MS : 0
  return Math.max(until, told, state.phase === 'claimed' ? state.leaseUntil : 0)
}

/** {@link Ledger.claim} for a row that exists. `revision` is the ledger's current one. */
export function claimRow(
  { record, state }: LedgerEntry,
  given: LedgerAnswer,
  holder: string,
  lease: { readonly now: number; readonly leaseMs: number; readonly revision: number },
): RowStep<ClaimResult> {
  const answer = withShortReason(given)
  const current = stateAt(state, lease.now)
  switch (current.phase) {
    case 'issued': {
      if (lease.now >= record.expiresAt && answer.decision !== 'expire') {
        return { result: { status: 'expired' }, state: settle({ decision: 'expire' }, EXPIRED) }
      }
      const { revision } = lease
      const settled = settledOutcome(answer)
      return {
        result: { status: 'claimed', revision },
        state:
          settled === undefined
            ? { phase: 'claimed', answer, holder, leaseUntil: lease.now + lease.leaseMs, revision }
            : settle(answer, settled),
      }
    }
    case 'claimed':
      return { result: sameOr(record, current.answer, answer, { status: 'in-progress' }) }
    case 'interrupted':
      return { result: sameOr(record, current.answer, answer, { status: 'interrupted' }) }
    case 'done':
      return {
        result: sameOr(record, current.answer, answer, {
          status: 'repeat',
          outcome: current.outcome,
          late: current.late,
        }),
      }
    default:
      return current satisfies never
  }
}

/** {@link Ledger.renew} for a row that exists. */
export function renewRow(
  state: ApprovalState,
  holder: string,
  lease: { readonly now: number; readonly leaseMs: number },
): RowStep<RenewResult> {
  const current = stateAt(state, lease.now)
  if (current.phase !== 'claimed' || current.holder !== holder) return { result: { status: 'lost' } }
  return { result: { status: 'renewed' }, state: { ...current, leaseUntil: lease.now + lease.leaseMs } }
}

/** {@link Ledger.complete} for a row that exists. */
export function completeRow(
  state: ApprovalState,
  holder: string,
  outcome: BoundedOutcome,
  now: number,
): RowStep<CompleteResult> {
  const current = stateAt(state, now)
  switch (current.phase) {
    case 'issued':
      return { result: { status: 'fenced' } }
    case 'done':
      return { result: { status: 'already-recorded' } }
    case 'claimed':
    case 'interrupted': {
      if (current.holder !== holder) return { result: { status: 'fenced' } }
      const late = current.phase === 'interrupted'
      // Either starts the call, now or later, and others may have been told that this call will not start any more.
      const isStart = outcome.type === 'handed-out' || (outcome.type === 'cancelled' && 'next' in outcome)
      if (late && isStart) return { result: { status: 'fenced' } }
      const { answer, revision } = current
      return {
        result: { status: 'recorded', late },
        state:
          outcome.type === 'interrupted'
            ? { phase: 'interrupted', answer, holder, revision }
            : { phase: 'done', answer, outcome, late },
      }
    }
    default:
      return current satisfies never
  }
}

/** {@link Ledger.reclaim} for a row that exists. */
export function reclaimRow(
  { record, state }: LedgerEntry,
  holder: string,
  lease: { readonly now: number; readonly leaseMs: number },
): RowStep<ReclaimResult> {
  const current = stateAt(state, lease.now)
  const claimed = (answer: LedgerAnswer, revision: number): RowStep<ReclaimResult> => ({
    result: { status: 'claimed', answer, revision },
    state: { phase: 'claimed', answer, holder, leaseUntil: lease.now + lease.leaseMs, revision },
  })
  // The grant that the answer may have led to was made when the call was handed out.
  if (current.phase === 'done' && current.outcome.type === 'handed-out' && record.providerExecuted === true)
    return claimed(current.answer, 0)
  if (current.phase !== 'interrupted' || !record.idempotent) return { result: { status: 'refused' } }
  // The revision of the first claim: a revocation since then still wins over the grant that this answer may lead to.
  return claimed(current.answer, current.revision)
}

/** Whether two records are the same request, member by member. */
export function sameRecord(one: ApprovalRecord, other: ApprovalRecord): boolean {
  return recordText(one) === recordText(other)
}

function recordText(record: ApprovalRecord): string {
  const members = Object.entries(record).filter(([, value]) => value !== undefined)
  return JSON.stringify(members.sort(([a], [b]) => (a < b ? -1 : 1)))
}

const EXPIRED: StoredSettlement = { type: 'cancelled', code: 'approval-expired' }

/** The outcome of an answer that runs nothing, as a row stores it. An approval has no outcome before its call has run. */
export function settledOutcome(given: LedgerAnswer): StoredSettlement | undefined {
  const answer = withShortReason(given)
  switch (answer.decision) {
    case 'approve':
      return undefined
    case 'deny':
      return { type: 'denied', reason: answer.reason }
    case 'cancel':
      return { type: 'cancelled', reason: answer.reason, code: answer.code }
    case 'expire':
      return EXPIRED
    default:
      return answer satisfies never
  }
}

type StoredSettlement = Extract<StoredOutcome, { type: 'denied' | 'cancelled' }>

function withShortReason(answer: LedgerAnswer): LedgerAnswer {
  if (!('reason' in answer) || answer.reason === undefined) return answer
  return { ...answer, reason: answer.reason.slice(0, MAX_REASON_LENGTH) }
}

function settle(answer: LedgerAnswer, outcome: StoredOutcome): ApprovalState {
  return { phase: 'done', answer, outcome, late: false }
}

function sameOr(
  record: ApprovalRecord,
  first: LedgerAnswer,
  second: LedgerAnswer,
  same: ClaimResult,
): ClaimResult {
  if (isSameAnswer(record, first, second)) return same
  return first.decision === 'expire' ? { status: 'expired' } : { status: 'conflict', settled: first.decision }
}

function mandateOf(answer: LedgerAnswer): string | undefined {
  return 'mandate' in answer ? answer.mandate : undefined
}

// An edit that changes nothing is no edit: what counts is which arguments run. The reason is not part of the decision.
function isSameAnswer(record: ApprovalRecord, first: LedgerAnswer, second: LedgerAnswer): boolean {
  if (mandateOf(first) !== mandateOf(second)) return false
  if (first.decision !== 'approve' || second.decision !== 'approve') return first.decision === second.decision
  const ran = (answer: { readonly arguments?: string | undefined }) => answer.arguments ?? record.arguments
  return first.scope === second.scope && ran(first) === ran(second)
}

/** An outcome as a row stores it: a result is never larger than {@link MAX_OUTCOME_BYTES}. */
export type BoundedOutcome = StoredOutcome | Extract<ToolOutcome, { type: 'interrupted' }>

/** What is kept in place of an outcome: its kind, the SHA-256 of its JSON, and its size. */
export type UnavailableOutcome = Extract<StoredOutcome, { type: 'unavailable' }>

/** The outcome itself, or its hash and size if it is too large to store. */
export async function boundOutcome(outcome: ToolOutcome): Promise<BoundedOutcome> {
  // The arguments of a call that was handed out are needed when its answer is sent again, and are no longer than the request.
  if (outcome.type === 'interrupted' || outcome.type === 'handed-out') return outcome
  return outcomeSize(outcome) <= MAX_OUTCOME_BYTES ? outcome : unavailable(outcome)
}

/** Size of an outcome's JSON in bytes of UTF-8. */
export function outcomeSize(outcome: ToolOutcome | StoredOutcome): number {
  return byteLength(JSON.stringify(outcome))
}

/** What is kept in place of an outcome that is not stored. */
export async function unavailable(
  outcome: Exclude<ToolOutcome, { type: 'interrupted' }>,
): Promise<UnavailableOutcome> {
  const hash = await sha256(JSON.stringify(outcome))
  return { type: 'unavailable', of: outcome.type, hash, bytes: outcomeSize(outcome) }
}
