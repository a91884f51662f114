import type { ToolCallApproval } from '../messages.js'
import type { AGUIEvent } from '../protocol/events.js'

/** What a step asks its caller to do, after listeners were told of the new state. */
export type Effect =
  | {
      readonly type: 'approval-requested'
      readonly messageId: string
      readonly toolCallId: string
      readonly toolName: string
      readonly input: unknown
      readonly approval: ToolCallApproval
    }
  | {
      readonly type: 'approval-responded'
      readonly toolCallId: string
      readonly approvalId: string
      readonly approved: boolean
    }
  /** An event the machine does not consume: the application's own. */
  | { readonly type: 'unhandled'; readonly event: AGUIEvent }
  | { readonly type: 'warning'; readonly code: WarningCode; readonly message: string }

/** Why the machine left a step out. */
export type WarningCode = 'unknown-id' | 'illegal-step' | 'malformed-value' | 'patch-failed'

/** The result of most steps. Shared, so that a delta allocates nothing for it. */
export const none: readonly Effect[] = []

export function warn(code: WarningCode, message: string): readonly Effect[] {
  return [{ type: 'warning', code, message }]
}
