import { outcomes, type ToolCallState } from '../messages.js'

/**
 * Every legal transition of a tool call; the machine ignores any other with a warning. A call whose input is
 * complete may be reopened for more arguments (AG-UI 1.0, tool calls), and a request is open again if its
 * answer was not accepted. Nothing else moves backwards.
 */
const legal: Readonly<Record<ToolCallState, readonly ToolCallState[]>> = {
  'awaiting-input': ['input-streaming', 'input-complete', ...outcomes],
  'input-streaming': ['input-complete', ...outcomes],
  'input-complete': ['input-streaming', 'approval-requested', 'executing', ...outcomes],
  'approval-requested': ['approval-responded', ...outcomes],
  'approval-responded': ['approval-requested', 'executing', ...outcomes],
  executing: ['complete', 'error'],
  complete: [],
  error: [],
  denied: [],
  cancelled: [],
}

/** Whether a tool call may move directly from one state to another. */
export function canMove(from: ToolCallState, to: ToolCallState): boolean {
  return legal[from].includes(to)
}

export function isToolCallState(value: unknown): value is ToolCallState {
  return typeof value === 'string' && Object.hasOwn(legal, value)
}
