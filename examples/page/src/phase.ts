import type { ToolCallState } from '@countersign/core'

/**
 * What the card of a call has to show: its arguments as they arrive, the question, what was decided about a call that is not over, or what
 * came of it.
 */
export type Phase = 'arriving' | 'asked' | 'decided' | 'ended'

/** The phase of a call in any state. */
export function phaseOf(state: ToolCallState): Phase {
  switch (state) {
    case 'awaiting-input':
    case 'input-streaming':
      return 'arriving'
    case 'approval-requested':
      return 'asked'
    case 'input-complete':
    case 'approval-responded':
    case 'executing':
      return 'decided'
    case 'complete':
    case 'error':
    case 'denied':
    case 'cancelled':
      return 'ended'
    default:
      return state satisfies never
  }
}
