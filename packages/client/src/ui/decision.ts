import {
  type ApprovalHistoryEntry,
  approvalHistory,
  displayText,
  isRecord,
  type MessagePart,
  omitUndefined,
  sameJson,
  type ToolCallPart,
  type UIMessage,
} from '@countersign/core'

/**
 * The call with the decision that the server has recorded in its message, such as before a reload or in another browser, where this page
 * knows of none, or where its own answer was not used because another came first: a card then shows the arguments that ran. The same
 * object if there is nothing to add.
 */
export function withRecord(part: ToolCallPart, messages: readonly UIMessage[]): ToolCallPart {
  const { approval } = part
  if (approval === undefined) return part
  const entry = entryOf(part, messages)
  if (entry?.by !== 'person' || (entry.decision !== 'approve' && entry.decision !== 'deny')) return part
  const approved = entry.decision === 'approve'
  const isWhole = entry.edited !== true || entry.input !== undefined
  if (approval.approved === approved && (!isWhole || sameJson(approval.input, entry.input))) return part
  const { scope, input: _, reason, edited, mandate, ...asked } = approval
  // In the order of the call, as when they were edited: the server sorts them.
  const order = Object.fromEntries(Object.keys(Object(part.input)).map((key) => [key, undefined]))
  const inOrder = Object.entries({ ...order, ...Object(entry.input) }).filter(([, one]) => one !== undefined)
  const input = isRecord(entry.input) ? Object.fromEntries(inOrder) : entry.input
  const told = omitUndefined({ scope: entry.scope, input, reason: entry.reason })
  return { ...part, approval: { ...asked, approved, ...told } }
}

/**
 * What was decided about a call, as a sentence without its period; `undefined` while nothing is. It comes from the call itself, or
 * from what the server has recorded in its message.
 */
export function decisionOf(part: ToolCallPart, messages: readonly UIMessage[]): string | undefined {
  const recorded = withRecord(part, messages)
  const own = ownDecision(recorded)
  const entry = entryOf(part, messages)
  // The server keeps no copy of changes that are very old.
  const isLost = recorded !== part && entry?.edited === true && entry.input === undefined
  if (isLost) return `${own} with changes. The arguments shown are those before the changes`
  if (own !== undefined || part.approval !== undefined) return own
  if (entry?.mandate === undefined) return undefined
  const { text } = displayText(entry.mandate.label, { multiline: false })
  return `${entry.decision === 'deny' ? 'Refused' : 'Allowed'} beforehand (${text})`
}

function entryOf(part: ToolCallPart, messages: readonly UIMessage[]): ApprovalHistoryEntry | undefined {
  const isIt = (other: MessagePart) => other.type === 'tool-call' && other.id === part.id
  const message = messages.find(({ parts }) => parts.some(isIt))
  return message && approvalHistory([message]).find(({ toolCallId }) => toolCallId === part.id)
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
