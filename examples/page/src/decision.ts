import { type ApprovalHistoryEntry, approvalHistory, displayText, type ToolCallPart } from '@countersign/core'
import { client } from './chat.js'
import { decisionOf } from './words.js'

/** What was decided about a call: here, or as the server has recorded it, such as before a reload or in another browser. */
export function shownDecision(part: ToolCallPart): string | undefined {
  const own = decisionOf(part)
  if (own !== undefined) return own
  const message = client.getSnapshot().messages.find(({ parts }) => parts.includes(part))
  const entry = message && approvalHistory([message]).find(({ toolCallId }) => toolCallId === part.id)
  if (part.approval !== undefined)
    return entry?.by === 'person'
      ? decisionOf({ ...part, approval: answerIn(entry, part.approval) })
      : undefined
  if (entry?.mandate === undefined) return undefined
  const { text } = displayText(entry.mandate.label, { multiline: false })
  return `${entry.decision === 'deny' ? 'Refused' : 'Allowed'} beforehand (${text})`
}

function answerIn(
  { decision, scope, edited }: ApprovalHistoryEntry,
  approval: NonNullable<ToolCallPart['approval']>,
): NonNullable<ToolCallPart['approval']> {
  if (decision !== 'approve' && decision !== 'deny') return approval
  const approved = decision === 'approve'
  return { ...approval, approved, ...(scope && { scope }), ...(edited && { input: {} }) }
}
