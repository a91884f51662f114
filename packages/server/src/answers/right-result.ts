import {
  getCountersignMetadata,
  isRecord,
  omitUndefined,
  setCountersignMetadata,
  type ToolMessage,
} from '@countersign/core'
import { canonicalJson } from '../encoding/canonical.js'
import { type CallSite, resultMessage } from '../history/history.js'
import { outcomeOf } from '../history/model-messages.js'
import type { ApprovalRef, LedgerAnswer, LedgerEntry, StoredOutcome } from '../ledger/ledger.js'
import { unavailable } from '../ledger/ledger-row.js'
import { isSuccess, type ToolOutcome } from '../outcome.js'
import type { RunScope } from '../scope/scope.js'
import { firstAnswer } from './claim.js'
import { decidedBy, restoreOutcome, toStored } from './outcome.js'

type RecordScope = Pick<RunScope, 'settings' | 'owner'>

/** The ledger's result, if the client's differs: in its outcome, or in what the user changed the arguments to. */
export async function rightResult(
  scope: RecordScope,
  { call }: CallSite,
  result: ToolMessage,
  entry: LedgerEntry,
): Promise<ToolMessage | undefined> {
  const { record, state } = entry
  if (state.phase !== 'done') return undefined
  const { outcome, answer } = state
  const isClients = outcome.type === 'handed-out'
  const kept = isClients ? outcomeOf(result) : restoreOutcome(outcome)
  const isRight = isClients || (await isSame(outcomeOf(result), kept, outcome))
  const said =
    getCountersignMetadata(result.metadata).decided ?? getCountersignMetadata(call.metadata).decided
  const isEdited = answer.decision === 'approve' && answer.arguments !== undefined
  if (isRight && !isEdited && !(isRecord(said) && said.edited === true)) return undefined
  const whole = await wholeAnswer(scope, record, answer, outcome)
  const decided = decidedBy(scope, whole ?? answer, record.scopes)
  if (!isRight) return resultMessage(result.id, result.toolCallId, kept, { decided })
  // The ledger can't tell now: what the history says stays.
  if (whole === undefined || editsText(said) === editsText(decided)) return undefined
  const own = { ...getCountersignMetadata(result.metadata), decided }
  return omitUndefined({ ...result, metadata: setCountersignMetadata(result.metadata, own) })
}

/** An answer with the edited arguments, which the ledger's list leaves out; undefined if the ledger can't tell. */
async function wholeAnswer(
  scope: RecordScope,
  ref: ApprovalRef,
  answer: LedgerAnswer,
  outcome: StoredOutcome,
): Promise<LedgerAnswer | undefined> {
  if (answer.decision !== 'approve' || answer.arguments !== '') return answer
  if (outcome.type === 'handed-out') return { ...answer, arguments: outcome.arguments }
  return (await firstAnswer(scope, ref))?.answer
}

/** What the user changed the arguments to, to be compared. */
function editsText(decided: unknown): string | undefined {
  if (!isRecord(decided) || decided.edited !== true) return undefined
  const written = canonicalJson([decided.input])
  return written.ok ? written.canonical : ''
}

/**
 * For an outcome that was too large to keep, the ledger still has the hash. A reason that it does not have may have been too long to keep: then what
 * the history says stays.
 */
async function isSame(said: ToolOutcome, kept: ToolOutcome, stored: StoredOutcome): Promise<boolean> {
  if (stored.type === 'unavailable') return (await unavailable(toStored(said))).hash === stored.hash
  const isSilent = !isSuccess(kept) && kept.reason === undefined
  return textOf(isSilent && !isSuccess(said) ? { ...said, reason: undefined } : said) === textOf(kept)
}

/** Equal outcomes have equal texts, even if a store does not keep the order of members. */
function textOf(outcome: ToolOutcome): string {
  const plain = isSuccess(outcome)
    ? [outcome.value]
    : [outcome.kind, outcome.reason ?? null, outcome.code ?? null]
  const written = canonicalJson(plain)
  return written.ok ? written.canonical : JSON.stringify(plain)
}
