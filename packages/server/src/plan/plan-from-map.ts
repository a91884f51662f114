import { CountersignError, isRecord, type Message, omitUndefined, type ResumeEntry } from '@countersign/core'
import { approvalIdOf } from '../answers/answers.js'
import { findUnansweredCalls } from '../history/history.js'
import {
  type ApprovalPlan,
  type PlannableCall,
  type PlannedCall,
  planApprovals,
  type Verdict,
} from './plan.js'

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

/**
 * Converts a request's verdicts to the `resume` of the run that carries them out: for servers that receive a map of verdicts
 * besides the history. A call without a verdict is cancelled, or left open with `onMissingVerdict: 'pending'`. The run verifies
 * every answer like any other.
 */
export function resumeFromMap(
  history: readonly Message[],
  verdicts: VerdictMap,
  { onMissingVerdict = 'cancel' }: { readonly onMissingVerdict?: 'pending' | 'cancel' | undefined } = {},
): ResumeEntry[] {
  const asked = findUnansweredCalls(history).flatMap((site) => {
    const approvalId = approvalIdOf(site)
    return approvalId === undefined ? [] : [{ toolCallId: site.call.id, approvalId }]
  })
  const { approved, rejected } = planApprovals(asked, verdictsOf(verdicts), { onMissingVerdict })
  return [...approved, ...rejected].map(({ call: { approvalId: interruptId }, verdict }): ResumeEntry => {
    if (verdict === undefined) return { interruptId, status: 'cancelled' }
    const { decision, ...said } = verdict
    const payload = omitUndefined({
      approved: decision === 'approve',
      reason: said.reason,
      scope: said.scope,
    })
    return { interruptId, status: 'resolved', payload }
  })
}

/** The verdicts of a map. A key may be the id of an approval or a call, so each entry yields both. */
function verdictsOf(verdicts: VerdictMap): readonly Verdict[] {
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
