import { isRecord, type ResumeEntry } from '@countersign/core'
import type { ToolApprovalResponsePart } from '../prompt/parts.js'
import type { Verdict } from './plan.js'

/** The content of an answer, however it arrived. */
interface Decision extends Pick<Verdict, 'decision' | 'reason'> {
  readonly scope: NonNullable<Verdict['scope']>
  /** As sent: neither parsed strictly nor permitted yet. */
  readonly edits?: { readonly value: unknown } | undefined
}

/** Reads the payload of an answer; undefined if it is malformed. `approved` must be a boolean, and nothing replaces it. */
export function readDecision({
  status,
  payload,
}: Pick<ResumeEntry, 'status' | 'payload'>): Decision | undefined {
  if (status === 'cancelled') return { decision: 'cancel', scope: 'once' }
  if (!isRecord(payload) || typeof payload.approved !== 'boolean') return undefined
  const { approved, reason, scope, editedArgs } = payload
  if (reason !== undefined && reason !== null && typeof reason !== 'string') return undefined
  const said = typeof reason === 'string' && reason !== '' ? { reason } : {}
  if (!approved) return { decision: 'deny', scope: 'once', ...said }
  if (scope !== undefined && scope !== null && scope !== 'once' && scope !== 'session') return undefined
  // Clients in typed languages write omitted members as `null` (`{"approved":true,"editedArgs":null}`, also `reason` and `scope`):
  // here that means no edit. Our own client never sends it.
  const edits = editedArgs === undefined || editedArgs === null ? {} : { edits: { value: editedArgs } }
  return { decision: 'approve', scope: scope ?? 'once', ...said, ...edits }
}

/**
 * Converts an answer to a verdict for a planner: an entry of `resume` or of a live queue, or the response part of a prompt. Undefined if
 * it is malformed. Edited arguments are dropped; only an agent's run can check those.
 */
export function verdictOf(answer: ResumeEntry | ToolApprovalResponsePart): Verdict | undefined {
  if (!('interruptId' in answer)) {
    const { approvalId: interruptId, ...payload } = answer
    return verdictOf({ interruptId, status: 'resolved', payload })
  }
  const read = readDecision(answer)
  if (read === undefined) return undefined
  const { edits: _, ...verdict } = read
  return { ...verdict, approvalId: answer.interruptId }
}
