import { frozen } from '@countersign/core'
import type { Grant, GrantKey } from './grant.js'
import {
  type ApprovalRecord,
  type ApprovalRef,
  type ApprovalState,
  type LedgerAnswer,
  type LedgerEntry,
  ledgerKey,
} from './ledger.js'
import { keptUntil, type UnavailableOutcome } from './ledger-row.js'
import { hasLimits, type MandateGrant, withFewUses } from './mandate-row.js'
import type { Row, StoredRow } from './row-store.js'

// The rows of a ledger: keys, how they are written, and how they are read. First approvals, then session approvals, mandates and standing denials.

export function approvalKey({ threadId, approvalId }: ApprovalRef): string {
  return ledgerKey('approval', threadId, approvalId)
}

export function openList(threadId: string): string {
  return ledgerKey('open', threadId)
}

export function callTag(threadId: string, toolCallId: string): string {
  return ledgerKey('call', threadId, toolCallId)
}

export function approvalRow(record: ApprovalRecord, state: ApprovalState, trace?: UnavailableOutcome): Row {
  const { threadId, toolCallId } = record
  const text = JSON.stringify(record)
  const textsOf = (one: ApprovalState) => {
    const texts = splitState(one)
    return { ...texts, reserved: reservedFor({ record, state: one }, text.length, texts.words?.length) }
  }
  const whole = textsOf(state)
  const { words, ...short } = textsOf(shortened(state, trace))
  const isShort = short.state === whole.state && words === whole.words
  return {
    record: text,
    ...whole,
    list: state.phase === 'done' ? undefined : openList(threadId),
    tag: callTag(threadId, toolCallId),
    keptUntil: keptUntil({ record, state }),
    short: isShort ? undefined : { ...short, ...(words !== whole.words && { words }) },
  }
}

/**
 * What an approval may still need: its edits, if they are no longer than the request, and then an outcome. The longest that can't do
 * without its text is a call that is handed out, with its arguments.
 */
function reservedFor({ record, state }: LedgerEntry, size: number, words = 0): number | undefined {
  // A provider's call that was handed out is claimed once more.
  const isOver = state.phase === 'done' && !(state.outcome.type === 'handed-out' && record.providerExecuted)
  if (isOver) return undefined
  const edits = state.phase === 'issued' && record.edits !== false ? size : words
  return edits + Math.max(size, edits)
}

/** A state as two JSON texts: see {@link splitState}. */
interface StateTexts {
  readonly state: string
  /** The answer's reason and edited arguments. Absent if it has neither. */
  readonly words: string | undefined
}

/**
 * Splits a state for storage. A run reads all open rows of its thread, so the long texts of an answer, whose length the user decides, are
 * stored apart from what that needs.
 */
function splitState(state: ApprovalState): StateTexts {
  const words = state.phase === 'issued' ? {} : wordsOf(state.answer)
  return {
    state: JSON.stringify(withoutWords(state)),
    words: Object.keys(words).length === 0 ? undefined : JSON.stringify(words),
  }
}

/** The state that {@link splitState} has split. */
export function joinState(state: string, words: string | undefined): ApprovalState {
  const short = JSON.parse(state)
  return words === undefined ? short : { ...short, answer: { ...short.answer, ...JSON.parse(words) } }
}

/** A state without the long texts of its answer: no reason, and an empty string for edited arguments. */
export function withoutWords(state: ApprovalState): ApprovalState {
  return state.phase === 'issued' ? state : { ...state, answer: shortAnswer(state.answer) }
}

/** The state as a store keeps it that needs room: without long reasons, and with `trace` in place of its outcome. */
function shortened(state: ApprovalState, trace: UnavailableOutcome | undefined): ApprovalState {
  if (state.phase === 'issued') return state
  const answer = state.answer.decision === 'expire' ? state.answer : { ...state.answer, reason: undefined }
  if (state.phase !== 'done') return { ...state, answer }
  const { outcome } = state
  // It has not run, which a trace would not tell.
  if (outcome.type !== 'denied' && outcome.type !== 'cancelled')
    return { ...state, answer, outcome: trace ?? outcome }
  const isShort = JSON.stringify(outcome.reason ?? '').length <= MAX_SHORT_REASON
  return { ...state, answer, outcome: isShort ? outcome : { ...outcome, reason: undefined } }
}

/** A reason of at most this many characters, as JSON, takes no room that counts. Those of this engine are shorter. */
const MAX_SHORT_REASON = 256

function shortAnswer(answer: LedgerAnswer): LedgerAnswer {
  if (answer.decision === 'expire') return answer
  const isEdited = 'arguments' in answer && answer.arguments !== undefined
  return { ...answer, reason: undefined, ...(isEdited && { arguments: '' }) }
}

function wordsOf(answer: LedgerAnswer): { readonly reason?: string; readonly arguments?: string } {
  return {
    ...('reason' in answer && answer.reason !== undefined && { reason: answer.reason }),
    ...('arguments' in answer && answer.arguments !== undefined && { arguments: answer.arguments }),
  }
}

/** Parsed rows that are still in memory: a run reads all open rows of its thread. Frozen: callers get them. */
const entries = new WeakMap<StoredRow, LedgerEntry>()

export function entryOf(row: StoredRow): LedgerEntry {
  const known = entries.get(row)
  if (known !== undefined) return known
  const entry = frozen({ record: JSON.parse(row.record), state: joinState(row.state, row.words) })
  entries.set(row, entry)
  return entry
}

export const GRANTS = 'grants'

/** By themselves, so that no session approval takes the place of a mandate, and neither that of a denial. */
export const MANDATES = 'mandates'
export const DENIALS = 'denials'

export function grantKey({ threadId, toolServer, toolName, scopeKey }: GrantKey): string {
  return ledgerKey('grant', threadId, toolServer, toolName, scopeKey)
}

/** The key of the row with all mandates of a tool in a conversation. */
export function mandatesKey({ threadId, toolServer, toolName }: Omit<GrantKey, 'scopeKey'>): string {
  return ledgerKey('mandates', threadId, toolServer, toolName)
}

/** The same for its standing denials. */
export function denialsKey({ threadId, toolServer, toolName }: Omit<GrantKey, 'scopeKey'>): string {
  return ledgerKey('denials', threadId, toolServer, toolName)
}

export function keyOfGrant(
  grant: Pick<Grant, keyof GrantKey | 'approved'> & { readonly terms?: unknown },
): string {
  if (grant.terms === undefined) return grantKey(grant)
  return grant.approved ? mandatesKey(grant) : denialsKey(grant)
}

export function grantRow(grant: Grant): Row {
  return {
    record: '',
    state: JSON.stringify(grant),
    list: GRANTS,
    keptUntil: grant.expiresAt,
    expendable: true,
  }
}

/** Never dropped to make room if one of them has limits. */
export function mandatesRow(mandates: readonly MandateGrant[]): Row {
  const state = JSON.stringify({ mandates })
  remember(state, mandates)
  const keptUntil = Math.max(...mandates.map(({ expiresAt }) => expiresAt))
  const row = { record: '', state, list: MANDATES, keptUntil }
  if (!mandates.some(hasLimits)) return { ...row, expendable: true }
  return { ...row, short: { state: JSON.stringify({ mandates: withFewUses(mandates) }) } }
}

/** Never dropped to make room: the calls that it refuses would run. */
export function denialsRow(denials: readonly MandateGrant[]): Row {
  return { ...mandatesRow(denials), list: DENIALS, expendable: false }
}

/**
 * The states of mandates that were read or written last, parsed: each call of their tool reads them. By their text, so none is out of date.
 * Bounded by their characters, because a user decides how long they are.
 */
const parsedMandates = new Map<string, readonly MandateGrant[]>()
const MAX_PARSED = 2 * 1024 * 1024
let parsedSize = 0

function remember(state: string, mandates: readonly MandateGrant[]): readonly MandateGrant[] {
  if (parsedMandates.has(state) || state.length > MAX_PARSED) return mandates
  for (const oldest of parsedMandates.keys()) {
    if (parsedSize + state.length <= MAX_PARSED) break
    parsedMandates.delete(oldest)
    parsedSize -= oldest.length
  }
  parsedMandates.set(state, mandates)
  parsedSize += state.length
  return mandates
}

export function mandatesOf(row: StoredRow | undefined): readonly MandateGrant[] {
  if (row === undefined) return []
  return parsedMandates.get(row.state) ?? remember(row.state, JSON.parse(row.state).mandates)
}

/** The grants of one row of an owner's list: one, or all mandates of a tool. Parsed anew, because callers get them. */
export function grantsIn(row: StoredRow): readonly Grant[] {
  const parsed = JSON.parse(row.state)
  return row.state.startsWith('{"mandates":') ? parsed.mandates : [parsed]
}
