import { CountersignError, isRecord } from '@countersign/core'
import type { PlannedCall } from './calls.js'
import { type ApprovalPlan, type PlannableCall, planApprovals, type Verdict } from './plan.js'

/** A user's decision, as an entry of a verdict map. */
export type VerdictEntry =
  | { readonly decision: 'approve'; readonly scope?: 'once' | 'session' | undefined }
  | { readonly decision: 'deny'; readonly reason?: string | undefined }

/** Decisions by the id of the call or of the approval. */
export type VerdictMap = ReadonlyMap<string, VerdictEntry> | Readonly<Record<string, VerdictEntry>>

/**
 * A planner for verdicts that came with a request: calls without an entry are cancelled. Entries matter only for calls that need
 * approval. Pure and synchronous; `needsApproval` is called once per call.
 */
export function planFromMap<Call extends PlannableCall = PlannedCall>(
  needsApproval: (call: Call) => boolean,
  verdicts: VerdictMap,
  options: { readonly reason?: string | undefined } = {},
): (calls: readonly Call[]) => Pick<ApprovalPlan<Call>, 'approved' | 'rejected'> {
  const given = verdictsOf(verdicts)
  return (calls) => {
    const policy = { onMissingVerdict: 'cancel', needsApproval, reason: options.reason } as const
    const { approved, rejected } = planApprovals(calls, given, policy)
    return { approved, rejected }
  }
}

/** The verdicts of a map. A key may be the id of an approval or a call, so each entry yields both. */
export function verdictsOf(verdicts: VerdictMap): readonly Verdict[] {
  const entries = isMap(verdicts) ? [...verdicts] : Object.entries(verdicts)
  return entries.flatMap(([id, entry]) => [
    { ...entry, approvalId: id },
    { ...entry, toolCallId: id },
  ])
}

function isMap(verdicts: VerdictMap): verdicts is ReadonlyMap<string, VerdictEntry> {
  return verdicts instanceof Map
}

/** How many entries a request may have. */
const MAX_ENTRIES = 256

/**
 * Reads the verdicts in a request's body: the member `verdicts`, an object of `{ decision: 'approve', scope? }` or
 * `{ decision: 'deny', reason? }` by the id of the call or of the approval. Empty without that member.
 *
 * @throws CountersignError `invalid-request`; `data.status` is the HTTP status, 400.
 */
export function readVerdictMap(body: unknown): ReadonlyMap<string, VerdictEntry> {
  const given = isRecord(body) ? body.verdicts : undefined
  if (given === undefined || given === null) return new Map()
  if (!isRecord(given)) throw malformed('verdicts must be an object: one entry for each call or approval.')
  const entries = Object.entries(given)
  if (entries.length > MAX_ENTRIES) throw malformed(`verdicts has more than ${MAX_ENTRIES} entries.`)
  return new Map(entries.map(([id, entry]) => [id, readEntry(id, entry)]))
}

function readEntry(id: string, entry: unknown): VerdictEntry {
  const { decision, reason, scope }: Readonly<Record<string, unknown>> = isRecord(entry) ? entry : {}
  const name = JSON.stringify(id.slice(0, 80))
  if (decision !== 'approve' && decision !== 'deny')
    throw malformed(`The verdict for ${name} needs a decision: "approve" or "deny".`)
  if (reason !== undefined && typeof reason !== 'string')
    throw malformed(`The reason of the verdict for ${name} must be a string.`)
  if (scope !== undefined && scope !== 'once' && scope !== 'session')
    throw malformed(`The scope of the verdict for ${name} must be "once" or "session".`)
  return decision === 'deny'
    ? { decision, ...(reason !== undefined && { reason }) }
    : { decision, ...(scope !== undefined && { scope }) }
}

function malformed(message: string): CountersignError {
  return new CountersignError('invalid-request', message, { status: 400 })
}
