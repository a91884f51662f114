import {
  type ApprovalHistoryEntry,
  approvalHistory,
  displayText,
  type ToolCallPart,
  type UIMessage,
} from '@countersign/core'

/**
 * What was decided about a call, as a sentence without its period; `undefined` while nothing is. It comes from the call itself, or
 * from what the server has recorded in its message, such as before a reload or in another browser.
 */
export function decisionOf(part: ToolCallPart, messages: readonly UIMessage[]): string | undefined {
  const own = ownDecision(part)
  if (own !== undefined) return own
  const message = messages.find(({ parts }) => parts.includes(part))
  const entry = message && approvalHistory([message]).find(({ toolCallId }) => toolCallId === part.id)
  if (part.approval !== undefined) {
    if (entry?.by !== 'person') return undefined
    const decision = ownDecision({ ...part, approval: answerIn(entry, part.approval) })
    // The server tells that they were edited, not what they became.
    return entry.edited ? `${decision}. The arguments shown are those before the changes` : decision
  }
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

function ownDecision({ approval, state }: ToolCallPart): string | undefined {
  if (approval?.approved === undefined) return undefined
  const { mandates, mandate } = approval
  const label = mandates?.find(({ id }) => id === mandate)?.label
  const more = label === undefined ? '' : ` and more (${displayText(label, { multiline: false }).text})`
  if (!approval.approved) return `You denied this${more}`
  if (state === 'denied') return 'You approved this, but the server did not allow it'
  const scope = approval.scope === 'session' ? ' for the rest of this chat' : ''
  return `You approved this${approval.input === undefined ? '' : ' with changes'}${scope}${more}`
}
