import { isTerminal, type ToolCallPart, type ToolResultPart, type UIMessage } from '../messages.js'
import { addCall, addFixed, addMessage, addReasoning, addResult, addText } from './cells.js'
import type { CallCell, ChatState, MessageCell } from './state.js'

/**
 * Takes over a finished message: from storage, from the application, or out of a snapshot. What needs no change keeps its identity.
 * Nothing runs and nothing is sent because of it; an answer that was under way when it was stored is in doubt.
 */
export function loadMessage(
  state: ChatState,
  message: UIMessage,
  settle: (part: ToolCallPart) => ToolCallPart = settleLoaded,
): MessageCell {
  const cell = addMessage(state, message)
  let changed = false
  const interrupted: CallCell[] = []
  for (const part of message.parts) {
    if (part.type === 'text') addText(state, cell, part.text).part = part
    else if (part.type === 'reasoning') {
      addReasoning(state, cell, {
        id: part.id,
        text: part.text,
        encryptedValue: part.encryptedValue,
        metadata: part.metadata && { ...part.metadata },
      }).part = part
    } else if (part.type === 'tool-call') {
      const settled = settle(part)
      changed ||= settled !== part
      const call = loadCall(state, cell, settled)
      if (settled !== part && part.state === 'executing') interrupted.push(call)
    } else if (part.type === 'tool-result') addResult(state, cell, part)
    else addFixed(state, cell, part)
  }
  for (const call of interrupted) reportInterrupted(state, call)
  if (changed) return cell
  cell.stale.clear()
  cell.dirty = false
  cell.published = message
  return cell
}

/** A client tool that was at work: the server has to hear that it may have run, so that nobody runs it again. */
function reportInterrupted(state: ChatState, call: CallCell): void {
  const { message = '', code } = call.error ?? {}
  const part: ToolResultPart = {
    type: 'tool-result',
    id: `${call.id}-interrupted`,
    toolCallId: call.id,
    content: JSON.stringify({ type: 'execution-error', reason: message }),
    error: message,
    metadata: { countersign: { outcome: 'error', code } },
  }
  addResult(state, call.owner, part, call)
  call.outputSent = false
  state.unsent.add(call)
}

export function loadCall(state: ChatState, owner: MessageCell, part: ToolCallPart): CallCell {
  const call = addCall(state, owner, {
    id: part.id,
    name: part.name,
    arguments: part.arguments,
    input: part.input,
    state: part.state,
    approval: part.approval,
    output: part.output,
    error: part.error,
    providerExecuted: part.providerExecuted ?? false,
    metadata: part.metadata && { ...part.metadata },
  })
  call.part = part
  const { approved, delivery } = part.approval ?? {}
  const unsettled = delivery === 'waiting' || delivery === 'unknown'
  if (unsettled && (approved === undefined || !isTerminal(part.state))) state.unsent.add(call)
  return call
}

/** What cannot be true any more once a conversation was stored and loaded again. */
export function settleLoaded(part: ToolCallPart): ToolCallPart {
  if (part.state === 'awaiting-input' || part.state === 'input-streaming') {
    const error = {
      message: 'The run ended before its arguments were complete.',
      code: 'incomplete-arguments',
    }
    return { ...part, state: 'cancelled', error }
  }
  if (part.state === 'executing') {
    const error = { message: 'It was interrupted and may or may not have run.', code: 'interrupted' }
    return { ...part, state: 'error', error }
  }
  if (part.state === 'approval-responded' && part.approval?.delivery === 'sent') {
    return { ...part, approval: { ...part.approval, delivery: 'unknown' } }
  }
  return part
}
