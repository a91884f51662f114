import type { ToolCallApproval } from '../messages.js'
import type { AGUIEvent } from '../protocol/events.js'
import type { LocalEvent } from './local-event.js'

/** The input of the machine: a stream event or a local event. */
export type Step = AGUIEvent | LocalEvent

/** What a step asks its caller to do, after listeners were notified of the new state. */
export type Effect =
  | {
      readonly type: 'approval-requested'
      readonly messageId: string
      readonly toolCallId: string
      readonly toolName: string
      readonly input: unknown
      readonly approval: ToolCallApproval
    }
  /** An event that the machine does not handle; it belongs to the application. */
  | { readonly type: 'unhandled'; readonly event: AGUIEvent }
  | { readonly type: 'warning'; readonly code: WarningCode; readonly message: string }

/** Why the machine ignored a step. */
export type WarningCode = 'unknown-id' | 'illegal-step' | 'malformed-value' | 'patch-failed'

/** The result of a step: nothing, the reason why it was ignored, or effects for the caller. */
export type Outcome = undefined | WarningCode | readonly Effect[]

/** The result of most steps. Shared, so that a delta does not allocate it. */
const none: readonly Effect[] = []

/** The effects of a step. A step that was ignored becomes a warning. */
export function effectsOf(step: Step, outcome: Outcome): readonly Effect[] {
  if (outcome === undefined) return none
  if (typeof outcome !== 'string') return outcome
  return [
    {
      type: 'warning',
      code: outcome,
      message: `Left out (${outcome}): ${excerpt(step)}`,
    },
  ]
}

/** A local step may contain values that JSON cannot represent. */
function excerpt(step: Step): string {
  try {
    return JSON.stringify(step).slice(0, 300)
  } catch {
    return step.type
  }
}
