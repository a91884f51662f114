import type { ToolCallApproval } from '../messages.js'
import type { AGUIEvent } from '../protocol/events.js'
import type { LocalEvent } from './local-event.js'

/** What the machine takes: an event of a stream, or something that happens here. */
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
  /** An event the machine does not consume: the application's own. */
  | { readonly type: 'unhandled'; readonly event: AGUIEvent }
  | { readonly type: 'warning'; readonly code: WarningCode; readonly message: string }

/** Why the machine left a step out. */
export type WarningCode = 'unknown-id' | 'illegal-step' | 'malformed-value' | 'patch-failed'

/** What comes of a step: nothing to tell, the reason why it was left out, or what it asks of its caller. */
export type Outcome = undefined | WarningCode | readonly Effect[]

const reasons: Readonly<Record<WarningCode, string>> = {
  'unknown-id': 'there is nothing here with that id',
  'illegal-step': 'it is not possible as things stand',
  'malformed-value': 'its value is not of the form it should have',
  'patch-failed': 'it does not apply, or no `statePatch` is configured',
}

/** The result of most steps. Shared, so that a delta allocates nothing for it. */
const none: readonly Effect[] = []

/** What to tell of a step; one that was left out is warned of. */
export function effectsOf(step: Step, outcome: Outcome): readonly Effect[] {
  if (outcome === undefined) return none
  if (typeof outcome !== 'string') return outcome
  return [
    {
      type: 'warning',
      code: outcome,
      message: `Left out, because ${reasons[outcome]}: ${excerpt(step)}`,
    },
  ]
}

/** A step of the page's own may hold what has no JSON form. */
function excerpt(step: Step): string {
  try {
    return JSON.stringify(step).slice(0, 300)
  } catch {
    return step.type
  }
}
