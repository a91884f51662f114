import type { AGUIEvent, ApprovalErrorCode } from '@countersign/core'
import type { CallSite } from '../history/history.js'

/** An answer that was not taken, and what becomes of its call. */
export interface Refusal {
  readonly approvalId: string
  readonly code: ApprovalErrorCode
  readonly message: string
  /** The call it was for, where it could be found. */
  readonly site?: CallSite | undefined
  /**
   * `as-found`: the answer itself did not verify, so the call stays open if its own token is good, and is closed otherwise.
   * `open`: nothing is wrong with the answer, only the ledger could not be asked. `close`: the request is used up.
   */
  readonly fate: 'as-found' | 'open' | 'close'
}

/** The event that tells the client: the run goes on. */
export function refusedEvent({ approvalId, code, message, site }: Refusal): AGUIEvent {
  const toolCallId = site?.call.id
  const value = { approvalId, ...(toolCallId !== undefined && { toolCallId }), code, message }
  return { type: 'CUSTOM', name: 'approval-refused', value }
}
