import type { ToolCallPart, UIMessage } from '../messages.js'
import { isTerminal } from '../messages.js'
import type { MessagesSnapshotEvent } from '../protocol/events.js'
import { askApproval, markChanged, readApproval } from './approvals.js'
import {
  addFixed,
  addMessage,
  addReasoning,
  addText,
  moveCall,
  retainMessages,
  setOrder,
  touchMessage,
} from './cells.js'
import { type Effect, none } from './effects.js'
import { foldMessages } from './fold.js'
import { loadCall } from './load.js'
import { readMessage } from './read.js'
import type { CallCell, ChatState, MessageCell, PartCell } from './state.js'
import { sameJson } from './value.js'

/**
 * MESSAGES_SNAPSHOT: the server's view of the conversation replaces ours message by message (AG-UI 1.0, state). What it does not
 * change keeps its identity. Calls we know keep what the person was shown and answered; a snapshot answers nothing.
 */
export function applySnapshot(state: ChatState, event: MessagesSnapshotEvent): readonly Effect[] {
  const messages = foldMessages(event.messages)
  const carries = new Set(event.messages.map((message) => message.role))
  const ids = new Set(messages.map((message) => message.id))
  retainMessages(state, (cell) => ids.has(cell.id) || keptWithout(cell, carries))
  const effects = messages.flatMap((message) => mergeMessage(state, message))
  reorder(state, messages)
  return effects
}

/** Activities and bare reasoning stay unless the snapshot tells of that kind at all. */
function keptWithout(cell: MessageCell, carries: ReadonlySet<string>): boolean {
  const only = (test: (part: PartCell) => boolean) => cell.parts.length > 0 && cell.parts.every(test)
  if (only((part) => part.kind === 'fixed' && part.part.type === 'data')) return !carries.has('activity')
  return cell.provisional && only((part) => part.kind === 'reasoning') && !carries.has('reasoning')
}

function mergeMessage(state: ChatState, message: UIMessage): readonly Effect[] {
  const known = state.messages.get(message.id)
  if (!known) {
    const cell = addMessage(state, message)
    return fillMessage(state, cell, message, new Map())
  }
  if (sameJson(readMessage(state, message.id), message)) return none
  const calls = new Map<string, CallCell>()
  for (const part of known.parts) if (part.kind === 'call') calls.set(part.id, part)
  known.parts = []
  known.stale = []
  known.published = undefined
  known.text = undefined
  known.metadata = message.metadata && { ...message.metadata }
  touchMessage(state, known)
  const effects = fillMessage(state, known, message, calls)
  // A call the snapshot no longer knows keeps its place at the end while a person's answer hangs on it.
  for (const call of calls.values()) {
    if (known.parts.includes(call)) continue
    if (call.approval && !isTerminal(call.state)) keepCall(known, call)
    else forgetCall(state, call)
  }
  return effects
}

function fillMessage(
  state: ChatState,
  cell: MessageCell,
  message: UIMessage,
  calls: ReadonlyMap<string, CallCell>,
): readonly Effect[] {
  return message.parts.flatMap((part) => {
    switch (part.type) {
      case 'text':
        addText(state, cell, part.text)
        return none
      case 'reasoning':
        addReasoning(state, cell, {
          id: part.id,
          text: part.text,
          encryptedValue: part.encryptedValue,
          metadata: part.metadata && { ...part.metadata },
        })
        return none
      case 'tool-call':
        return mergeCall(state, cell, part, calls.get(part.id))
      default:
        addFixed(state, cell, part)
        return none
    }
  })
}

function mergeCall(
  state: ChatState,
  owner: MessageCell,
  part: ToolCallPart,
  known: CallCell | undefined,
): readonly Effect[] {
  if (!known) return addSnapshotCall(state, owner, part)
  keepCall(owner, known)
  if (isTerminal(known.state)) return none
  if (known.approval) {
    const differs = part.name !== known.name || !sameJson(part.input, known.input)
    if (differs && known.state === 'approval-requested') return markChanged(state, known)
  } else if (part.approval && known.state === 'input-complete') {
    return askFrom(state, part)
  }
  if (isTerminal(part.state) && moveCall(state, known, part.state)) {
    known.output = part.output
    known.error = part.error
    if (known.approval?.approved !== undefined) known.approval = { ...known.approval, delivery: 'settled' }
    state.unsent.delete(known)
  }
  return none
}

/** A call first heard of in a snapshot: its request is shown, but no answer to an open one is taken from there. */
function addSnapshotCall(state: ChatState, owner: MessageCell, part: ToolCallPart): readonly Effect[] {
  if (isTerminal(part.state) || !part.approval) {
    loadCall(state, owner, part)
    return none
  }
  const { approval: _, ...bare } = part
  loadCall(state, owner, { ...bare, state: 'input-complete' })
  return askFrom(state, part)
}

function askFrom(state: ChatState, part: ToolCallPart): readonly Effect[] {
  const approval = readApproval(part.approval)
  return approval ? askApproval(state, { toolCallId: part.id, approval }) : none
}

/** Puts a known call at the end of a message that is being rebuilt. */
function keepCall(owner: MessageCell, call: CallCell): void {
  call.index = owner.parts.length
  owner.parts.push(call)
  owner.stale.push(call)
}

function forgetCall(state: ChatState, call: CallCell): void {
  state.open.delete(call)
  state.unsent.delete(call)
  if (state.calls.get(call.id) === call) state.calls.delete(call.id)
  if (call.approval) state.approvals.delete(call.approval.id)
}

/** The snapshot's order, with what it leaves out staying behind its neighbour. */
function reorder(state: ChatState, messages: readonly UIMessage[]): void {
  const listed = new Set(messages.map((message) => message.id))
  const order: MessageCell[] = []
  const next = messages.flatMap((message) => state.messages.get(message.id) ?? [])[Symbol.iterator]()
  for (const cell of state.order) {
    if (!listed.has(cell.id)) order.push(cell)
    else {
      const { value } = next.next()
      if (value) order.push(value)
    }
  }
  if (order.some((cell, position) => cell !== state.order[position])) setOrder(state, order)
}
