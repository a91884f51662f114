import type { ChatSnapshot, ToolCallPart } from '@countersign/core'

/** What is to be said of answers that were given and are not known to be with the server. */
export type UnsentKind = 'none' | 'waiting' | 'unknown'

/** Whether the last answer may be asked for again. Another one would drop an answer that the person gave, or a question to them. */
export function mayAnswerAgain(chat: ChatSnapshot): boolean {
  return chat.status === 'ready' && chat.interrupts.length === 0 && unsentIn(chat) === 'none'
}

/** While something runs, waits for the person or has failed, that is what the page tells of. */
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
