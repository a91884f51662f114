import { isTerminal, type ToolCallState, type ToolResultPart, type UIMessage } from '../messages.js'
import type {
  CallCell,
  ChatState,
  FixedCell,
  MessageCell,
  PartCell,
  ReasoningCell,
  TextCell,
} from './state.js'
import { canMove } from './transitions.js'

/** Adds a message at the end; the caller has made sure that the id is new. */
export function addMessage(
  state: ChatState,
  init: Pick<UIMessage, 'id' | 'role' | 'metadata' | 'createdAt'>,
): MessageCell {
  if (init.role === 'user') state.turn++
  const cell: MessageCell = {
    id: init.id,
    role: init.role,
    turn: state.turn,
    parts: [],
    metadata: init.metadata && { ...init.metadata },
    createdAt: init.createdAt,
    position: state.order.length,
    text: undefined,
    provisional: false,
    streaming: false,
    published: undefined,
    stale: new Set(),
    dirty: false,
  }
  state.order.push(cell)
  state.messages.set(cell.id, cell)
  orderChanged(state)
  touchMessage(state, cell)
  return cell
}

/** Gives a message that held only reasoning the id of the assistant message it turned out to belong to. */
export function renameMessage(state: ChatState, cell: MessageCell, id: string): void {
  state.messages.delete(cell.id)
  state.changed.add(cell.id)
  cell.id = id
  cell.provisional = false
  state.messages.set(id, cell)
  orderChanged(state)
  touchMessage(state, cell)
}

/** Drops every message that `keep` refuses, with its calls, approvals and whatever of them was not sent yet. */
export function retainMessages(state: ChatState, keep: (cell: MessageCell) => boolean): void {
  const kept: MessageCell[] = []
  for (const cell of state.order) {
    if (keep(cell)) kept.push(cell)
    else dropMessage(state, cell)
  }
  if (kept.length < state.order.length) setOrder(state, kept)
}

function dropMessage(state: ChatState, cell: MessageCell): void {
  state.messages.delete(cell.id)
  state.changed.add(cell.id)
  for (const part of cell.parts) dropPart(state, part)
}

/** Puts messages into a new order. */
export function setOrder(state: ChatState, order: MessageCell[]): void {
  let turn = 0
  order.forEach((cell, position) => {
    if (cell.role === 'user') turn++
    cell.position = position
    cell.turn = turn
  })
  state.order = order
  state.turn = turn
  orderChanged(state)
}

/** Takes a part out of the indexes. */
export function dropPart(state: ChatState, part: PartCell): void {
  if (part.kind === 'reasoning' && state.reasoning.get(part.id) === part) state.reasoning.delete(part.id)
  if (part.kind !== 'call') return
  state.open.delete(part)
  state.unsent.delete(part)
  if (state.calls.get(part.id) === part) state.calls.delete(part.id)
  if (part.approval && state.approvals.get(part.approval.id) === part)
    state.approvals.delete(part.approval.id)
}

export function addText(state: ChatState, owner: MessageCell, text: string): TextCell {
  const cell: TextCell = { kind: 'text', index: owner.parts.length, text, part: undefined }
  append(state, owner, cell)
  return cell
}

export function addFixed(state: ChatState, owner: MessageCell, part: FixedCell['part']): FixedCell {
  const cell: FixedCell = { kind: 'fixed', index: owner.parts.length, part }
  append(state, owner, cell)
  return cell
}

/** Adds a result to the message of its call, which is the latest one with that id unless another is given. */
export function addResult(
  state: ChatState,
  owner: MessageCell,
  part: ToolResultPart,
  call = state.calls.get(part.toolCallId),
): void {
  if (call?.owner === owner) call.answered = true
  addFixed(state, owner, part)
}

export function addReasoning(
  state: ChatState,
  owner: MessageCell,
  init: Pick<ReasoningCell, 'id' | 'text' | 'encryptedValue' | 'metadata'>,
): ReasoningCell {
  const cell: ReasoningCell = {
    kind: 'reasoning',
    index: owner.parts.length,
    owner,
    part: undefined,
    ...init,
  }
  state.reasoning.set(cell.id, cell)
  append(state, owner, cell)
  return cell
}

/** Adds a tool call. The newest call with an id is the one that later events mean. */
export function addCall(
  state: ChatState,
  owner: MessageCell,
  init: Pick<CallCell, 'id' | 'name'> & Partial<Omit<CallCell, 'kind' | 'index' | 'owner' | 'part'>>,
): CallCell {
  const cell: CallCell = {
    kind: 'call',
    index: owner.parts.length,
    owner,
    arguments: '',
    reader: undefined,
    input: undefined,
    state: 'awaiting-input',
    approval: undefined,
    output: undefined,
    error: undefined,
    providerExecuted: false,
    metadata: undefined,
    token: undefined,
    ready: undefined,
    replay: undefined,
    interrupted: false,
    answered: false,
    outputSent: undefined,
    part: undefined,
    ...init,
  }
  state.calls.set(cell.id, cell)
  if (cell.approval && !state.approvals.has(cell.approval.id)) state.approvals.set(cell.approval.id, cell)
  if (!isTerminal(cell.state)) state.open.add(cell)
  append(state, owner, cell)
  return cell
}

/** Moves a call to another state if the table allows it; says whether it did. */
export function moveCall(state: ChatState, call: CallCell, to: ToolCallState): boolean {
  if (!canMove(call.state, to)) return false
  call.state = to
  if (isTerminal(to)) state.open.delete(call)
  touchPart(state, call.owner, call)
  return true
}

function append(state: ChatState, owner: MessageCell, part: PartCell): void {
  if (part.kind !== 'text') owner.text = undefined
  owner.parts.push(part)
  owner.stale.add(part)
  touchMessage(state, owner)
}

/** Notes a change that listeners hear of at once. */
export function touchPart(state: ChatState, owner: MessageCell, part: PartCell): void {
  growPart(state, owner, part)
  state.owed = 'change'
}

/** Notes that a text, a reasoning or arguments have grown: listeners may hear of it with the next frame. */
export function growPart(state: ChatState, owner: MessageCell, part: PartCell): void {
  if (part.kind !== 'fixed') part.part = undefined
  owner.stale.add(part)
  markDirty(state, owner)
  if (state.owed === 'nothing') state.owed = 'growth'
}

export function touchMessage(state: ChatState, cell: MessageCell): void {
  markDirty(state, cell)
  state.owed = 'change'
}

function markDirty(state: ChatState, cell: MessageCell): void {
  cell.dirty = true
  state.dirty.add(cell)
  state.changed.add(cell.id)
}

function orderChanged(state: ChatState): void {
  state.published.messages = undefined
  state.published.ids = undefined
  state.owed = 'change'
}
