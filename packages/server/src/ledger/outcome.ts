import { sha256 } from '../encoding/digest.js'
import { MAX_OUTCOME_BYTES, type StoredOutcome, type ToolOutcome } from './ledger.js'

/** An outcome as a row stores it: never larger than {@link MAX_OUTCOME_BYTES}. */
export type BoundedOutcome = StoredOutcome | Extract<ToolOutcome, { type: 'interrupted' }>

/** What is kept in place of an outcome: its kind, the SHA-256 of its JSON, and its size. */
export type UnavailableOutcome = Extract<StoredOutcome, { type: 'unavailable' }>

/** The outcome itself, or its hash and size if it is too large to store. */
export async function boundOutcome(outcome: ToolOutcome): Promise<BoundedOutcome> {
  if (outcome.type === 'interrupted') return outcome
  return outcomeSize(outcome) <= MAX_OUTCOME_BYTES ? outcome : unavailable(outcome)
}

/** Size of an outcome's JSON in bytes of UTF-8. */
export function outcomeSize(outcome: ToolOutcome | StoredOutcome): number {
  return utf8.encode(JSON.stringify(outcome)).length
}

/** What is kept in place of an outcome that is not stored. */
export async function unavailable(
  outcome: Exclude<ToolOutcome, { type: 'interrupted' }>,
): Promise<UnavailableOutcome> {
  const hash = await sha256(JSON.stringify(outcome))
  return { type: 'unavailable', of: outcome.type, hash, bytes: outcomeSize(outcome) }
}

const utf8 = new TextEncoder()
