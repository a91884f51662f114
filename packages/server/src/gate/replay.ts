import { CountersignError, type MandateReplay } from '@countersign/core'
import { newGrant } from '../ledger/grant-row.js'
import type { LedgerEntry } from '../ledger/ledger.js'
import { findDenial, type MandateGrant, useMandate } from '../ledger/mandate-row.js'
import type { AgentSettings } from '../scope/settings.js'
import { readCall } from '../tools/call.js'
import type { Toolkit } from '../tools/toolkit.js'
import { toolDigest } from './tool-digest.js'

/** Which mandate to replay, and over which calls of its conversation. */
export interface ReplayRequest {
  readonly threadId: string
  /** The open request that offers it, and its id there. */
  readonly approvalId: string
  readonly mandate: string
  /** Calls of the conversation, at most 256: those with an answered approval request of the same tool count. */
  readonly toolCallIds: readonly string[]
}

export const MAX_REPLAYED = 256

/**
 * Which past requests of this user a mandate would have decided, had it been given before the first of them: by the same constraints, uses
 * and budget, with the arguments as they were asked about. Nothing is stored or counted.
 *
 * @throws CountersignError `approval-not-found` if this user has no such request, or it does not offer the mandate.
 */
export async function replayMandate(
  settings: AgentSettings,
  owner: string,
  { threadId, approvalId, mandate: id, toolCallIds }: ReplayRequest,
  leave: AbortSignal,
): Promise<MandateReplay> {
  const { ledger } = settings.approvals
  const record = (await ledger.lookup({ owner, threadId, approvalId }))?.record
  const offered = record?.mandates
  const offer = offered?.offers.find((one) => one.id === id)
  if (record === undefined || offered === undefined || offer === undefined) {
    const message = 'This request is not known, or does not offer this mandate.'
    throw new CountersignError('approval-not-found', message, { status: 404 })
  }
  const { toolName, toolServer } = record
  const { tool } = offered
  // Ids of calls may repeat across turns.
  const ids = [...new Set(toolCallIds)].slice(0, MAX_REPLAYED)
  const settled = (await ledger.settled?.(owner, threadId, ids)) ?? []
  const past = settled
    .filter((entry) => entry.record.toolName === toolName && entry.record.toolServer === toolServer)
    .toSorted((one, other) => one.record.issuedAt - other.record.issuedAt)
  const { label, where, budget, uses } = offer
  const terms = { label, where, budget, tool, approvalId }
  const key = { owner, threadId, toolName, toolServer, scopeKey: '' }
  const fresh = newGrant({ ...key, approved: offer.decide !== 'deny', uses, terms }, 0, 1)
  const given: readonly MandateGrant[] = fresh.terms === undefined ? [] : [{ ...fresh, terms: fresh.terms }]
  const [denials, approvals] = fresh.approved ? [[], given] : [given, []]
  let mandates: readonly MandateGrant[] = approvals
  const matched: MandateReplay['matched'][number][] = []
  for (const entry of past) {
    const input = await inputOf({ toolkit: settings.toolkit, leave }, entry, tool)
    const call = input && { ...key, tool, input: input.value, callKey: entry.record.approvalId, since: 0 }
    if (call === undefined) continue
    const { found = findDenial(denials, call, 0), left } = useMandate(mandates, call, 'use', 0)
    mandates = left ?? mandates
    if (found !== undefined) matched.push(describe(entry))
  }
  return { asked: past.length, matched }
}

/** The validated arguments of a past request; undefined if they don't fit the tool any more, or it is another version. */
async function inputOf(
  scope: { readonly toolkit: Toolkit; readonly leave: AbortSignal },
  { record }: LedgerEntry,
  digest: string,
) {
  const { toolCallId: id, toolName: name, arguments: text } = record
  const read = await readCall(scope, { id, name, arguments: text })
  return read.ok && (await toolDigest(read.call.tool)) === digest ? { value: read.call.input } : undefined
}

function describe({ record, state }: LedgerEntry): MandateReplay['matched'][number] {
  const decision = state.phase === 'issued' ? undefined : state.answer.decision
  const askedAt = new Date(record.issuedAt).toISOString()
  return { toolCallId: record.toolCallId, askedAt, ...(decision !== undefined && { decision }) }
}
