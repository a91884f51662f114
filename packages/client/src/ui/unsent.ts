import type { ChatSnapshot, ToolCallPart } from '@countersign/core'

/** What to tell the user about answers that may not have reached the server, and the text of the button that calls `retry()`. */
export interface UnsentNotice {
  readonly title: string
  readonly text: string
  readonly action: string
}

const waiting: UnsentNotice = {
  title: 'Your answer has not been sent',
  text: 'It is saved here. Nothing runs until you send it.',
  action: 'Send it',
}
const unknown: UnsentNotice = {
  title: 'Your answer may not have arrived',
  text: 'The connection ended before the server confirmed it. You can safely send it again: nothing runs twice.',
  action: 'Send it again',
}

/** Whether the last reply may be regenerated. That would drop an unsent answer of the user, or an open request. */
export function mayAnswerAgain(chat: ChatSnapshot): boolean {
  return chat.status === 'ready' && chat.interrupts.length === 0 && unsentIn(chat) === undefined
}

/** `undefined` while something runs, waits for the user or has failed: the page shows that instead. */
export function unsentIn({
  isLoading,
  error,
  pendingApprovals,
  messages,
}: ChatSnapshot): UnsentNotice | undefined {
  if (isLoading || error || pendingApprovals.length > 0) return undefined
  const deliveries = messages.flatMap(({ parts }) =>
    parts.flatMap((part) =>
      part.type === 'tool-call' && isUnsettled(part) ? [part.approval?.delivery] : [],
    ),
  )
  if (deliveries.includes('unknown')) return unknown
  return deliveries.includes('waiting') ? waiting : undefined
}

function isUnsettled({ state, approval }: ToolCallPart): boolean {
  return state === 'approval-responded' && approval?.approved !== undefined && approval.problem === undefined
}
