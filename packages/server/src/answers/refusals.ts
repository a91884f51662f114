import type { AGUIEvent, ApprovalErrorCode } from '@countersign/core'
import type { CallSite } from '../history/history.js'

/** A refused answer, and what happens to its call. */
export interface Refusal {
  readonly approvalId: string
  readonly code: ApprovalErrorCode
  readonly message: string
  /** The call it was for, if found. */
  readonly site?: CallSite | undefined
  /**
   * `as-found`: the answer itself was not accepted, so the call stays open if its own token is valid, and is closed otherwise. `open`: the
   * request can be answered again (the ledger was unreachable, the call is running, or the edits were invalid). `close`: it can't.
   */
  readonly fate: 'as-found' | 'open' | 'close'
}

/** The event that reports a refusal to the client; the run continues. */
export function refusedEvent({ approvalId, code, message, site }: Refusal): AGUIEvent {
  const toolCallId = site?.call.id
  const value = { approvalId, ...(toolCallId !== undefined && { toolCallId }), code, message }
  return { type: 'CUSTOM', name: 'approval-refused', value }
}
