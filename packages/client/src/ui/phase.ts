import type { ToolCallState } from '@countersign/core'

/**
 * What the card of a call shows: its arguments as they arrive, the approval request, the decision while the
 * call is not over, or its outcome.
 */
export type Phase = 'arriving' | 'asked' | 'decided' | 'ended'

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
