import type { ChatSnapshot, ToolCallPart } from '@countersign/core'

/** Whether the user has to be told about answers that may not have reached the server. */
export type UnsentKind = 'none' | 'waiting' | 'unknown'

/** Whether the last reply may be regenerated. That would drop an unsent answer of the user, or an open question. */
export function mayAnswerAgain(chat: ChatSnapshot): boolean {
  return chat.status === 'ready' && chat.interrupts.length === 0 && unsentIn(chat) === 'none'
}

/** `none` while something runs, waits for the user or has failed: the page shows that instead. */
export function unsentIn({ isLoading, error, pendingApprovals, messages }: ChatSnapshot): UnsentKind {
  if (isLoading || error || pendingApprovals.length > 0) return 'none'
  const deliveries = messages.flatMap(({ parts }) =>
    parts.flatMap((part) =>
      part.type === 'tool-call' && isUnsettled(part) ? [part.approval?.delivery] : [],
    ),
  )
  if (deliveries.includes('unknown')) return 'unknown'
  return deliveries.includes('waiting') ? 'waiting' : 'none'
}

function isUnsettled({ state, approval }: ToolCallPart): boolean {
  return state === 'approval-responded' && approval?.approved !== undefined && approval.problem === undefined
}
