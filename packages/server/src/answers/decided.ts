import type { ApprovalDecided, ApprovalOption } from '@countersign/core'
import { optionsOf } from '../gate/ask.js'
import type { LedgerAnswer } from '../ledger/ledger.js'
import type { RunScope } from '../scope/scope.js'
import type { VerifiedVerdict } from './verdicts.js'

/** Adds who gave the answer and when, as the ledger stores it: a repeat reports the first answer, not itself. */
export function given(
  scope: RunScope,
  answer: LedgerAnswer,
  by: NonNullable<LedgerAnswer['by']>,
): LedgerAnswer {
  return { ...answer, by, at: scope.settings.now() }
}

/** {@link decidedBy} for a verified answer. */
export function decidedFor(
  scope: RunScope,
  { claims }: VerifiedVerdict,
  answer: LedgerAnswer,
): ApprovalDecided {
  return decidedBy(scope, answer, optionsOf(scope, claims.scopes))
}

/** The decision behind a result, as in `metadata.countersign.decided`. */
export function decidedBy(
  { owner }: RunScope,
  answer: LedgerAnswer,
  options?: readonly ApprovalOption[] | undefined,
): ApprovalDecided {
  const { decision, by = 'person', at } = answer
  return {
    decision,
    ...(decision === 'approve' && { scope: answer.scope }),
    ...(decision === 'approve' && answer.arguments !== undefined && { edited: true }),
    ...(options !== undefined && { options }),
    by,
    ...(by === 'person' && owner !== null && { subject: owner }),
    ...(at !== undefined && { at: new Date(at).toISOString() }),
  }
}
