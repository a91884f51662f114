import {
  isTerminal,
  type MessagePart,
  type ReasoningPart,
  type TextPart,
  type ToolCallPart,
  type ToolCallState,
  type UIMessage,
} from '../messages.js'
import { setPublished } from './read.js'
import type {
  CallCell,
  ChatState,
  End,
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
  { id, role, metadata, createdAt }: Pick<UIMessage, 'id' | 'role' | 'metadata' | 'createdAt'>,
): MessageCell {
  if (role === 'user') state.turn++
  const cell: MessageCell = {
    id,
    role,
    turn: state.turn,
    parts: [],
    metadata: metadata && { ...metadata },
    createdAt,
    position: state.order.length,
    text: undefined,
    sources: undefined,
    provisional: false,
    streaming: false,
    published: undefined,
    shown: undefined,
    stale: [],
    dirty: false,
    untold: false,
    unread: false,
  }
  state.order.push(cell)
  state.messages.set(id, cell)
  // the messages before it stay where they are, and as they were published
  state.published.ids = undefined
  touchMessage(state, cell)
  return cell
}

/** Gives a message that held only reasoning the id of the assistant message it turned out to belong to. */
export function renameMessage(state: ChatState, cell: MessageCell, id: string): void {
  state.messages.delete(cell.id)
  state.changed.push({ id: cell.id, untold: true })
  cell.id = id
  cell.provisional = false
  state.messages.set(id, cell)
  orderChanged(state)
  touchMessage(state, cell)
}

/** Drops every message that `keep` refuses, with its calls, approvals and whatever of them was not sent yet. */
export function retainMessages(state: ChatState, keep: (cell: MessageCell) => boolean): void {
  const kept = state.order.filter(keep)
  if (kept.length === state.order.length) return
  const staying = new Set(kept)
  for (const cell of state.order) {
    if (staying.has(cell)) continue
    state.messages.delete(cell.id)
    markUntold(state, cell)
    for (const part of cell.parts) dropPart(state, part)
  }
  setOrder(state, kept)
}

/** Where the conversation ends now; a text that is being written is not its end yet. */
export function endOf({ order }: ChatState): End {
  const last = order.at(-1)
  const open = last?.streaming ? last.text : undefined
  return [order.length, open?.index ?? last?.parts.length ?? 0]
}

/**
 * Drops what was said since then, back to the last call or result: a run that failed left it unfinished, and the one that repeats it says
 * it anew. Calls stay, since they may have run.
 */
export function dropUnfinished(state: ChatState, [count, from]: End): void {
  const dropped = new Set<MessageCell>()
  for (let at = state.order.length - 1; at >= Math.max(count - 1, 0); at--) {
    const cell = state.order[at]
    if (cell?.role !== 'assistant') break
    const kept = Math.max(at < count ? from : 0, cell.parts.findLastIndex(isLasting) + 1)
    if (kept === 0 && at >= count) {
      dropped.add(cell)
      continue
    }
    if (kept === cell.parts.length) break
    for (const part of cell.parts.slice(kept)) dropPart(state, part)
    keepParts(state, cell, cell.parts.slice(0, kept))
    Object.assign(cell, { text: undefined, streaming: false })
    break
  }
  retainMessages(state, (cell) => !dropped.has(cell))
}

function isLasting(part: PartCell): boolean {
  if (part.kind === 'call') return !part.reader && part.error?.code !== 'incomplete-arguments'
  return part.kind === 'fixed' && part.part.type === 'tool-result'
}

/** Leaves a message no other parts than these. */
export function keepParts(state: ChatState, cell: MessageCell, parts: PartCell[]): void {
  setPublished(cell, undefined)
  cell.parts = parts
  cell.sources = undefined
  parts.forEach((part, index) => {
    part.index = index
  })
  touchMessage(state, cell)
}

/** Puts messages into a new order. */
function setOrder(state: ChatState, order: MessageCell[]): void {
  let turn = 0
  order.forEach((cell, position) => {
    if (cell.role === 'user') turn++
    cell.position = position
    cell.turn = turn
  })
  state.order = order
  state.turn = turn
  // names may be free again
  state.repeats.clear()
  orderChanged(state)
}

/** Takes a part out of the indexes. */
export function dropPart(state: ChatState, part: PartCell): void {
  if (part.kind === 'reasoning') dropFrom(state.reasoning, part.id, part)
  if (part.kind === 'fixed' && part.part.type === 'tool-result') dropFrom(state.results, part.part.id, part)
  if (part.kind !== 'call') return
  leaveAsked(state, part)
  state.open.delete(part)
  state.unsent.delete(part)
  const earlier = earlierOpen(state, part)
  if (earlier && state.calls.get(part.id) === part) state.calls.set(part.id, earlier)
  else dropFrom(state.calls, part.id, part)
  if (part.approval) dropFrom(state.approvals, part.approval.id, part)
}

function dropFrom<T>(index: Map<string, T>, id: string, part: T): void {
  if (index.get(id) === part) index.delete(id)
}

/** Puts a part at the end of its message. */
function addPart<Cell extends PartCell>(state: ChatState, cell: Cell): Cell {
  const { owner } = cell
  if (cell.kind !== 'text') owner.text = undefined
  cell.index = owner.parts.length
  owner.parts.push(cell)
  markStale(cell)
  touchMessage(state, owner)
  return cell
}

export function addText(state: ChatState, owner: MessageCell, text: string, part?: TextPart): TextCell {
  return addPart(state, { kind: 'text', owner, index: 0, stale: false, text, part })
}

export function addFixed(state: ChatState, owner: MessageCell, part: MessagePart): FixedCell {
  const cell = addPart(state, { kind: 'fixed', owner, index: 0, stale: false, part })
  if (part.type === 'tool-result' && !state.results.has(part.id)) state.results.set(part.id, cell)
  return cell
}

/** Adds a part that is finished, as it is. */
export function addDone(state: ChatState, owner: MessageCell, part: MessagePart): void {
  if (part.type === 'text') addText(state, owner, part.text, part)
  else if (part.type === 'reasoning') addReasoning(state, owner, part, part)
  else {
    // A result is that of the latest call with its id.
    const call = part.type === 'tool-result' ? state.calls.get(part.toolCallId) : undefined
    if (call?.owner === owner) call.answered = true
    addFixed(state, owner, part)
  }
}

export function addReasoning(
  state: ChatState,
  owner: MessageCell,
  { id, text, encryptedValue, metadata }: Omit<ReasoningPart, 'type'>,
  part?: ReasoningPart,
): void {
  const cell: ReasoningCell = {
    kind: 'reasoning',
    owner,
    index: 0,
    stale: false,
    id,
    text,
    encryptedValue,
    metadata: metadata && { ...metadata },
    part,
  }
  state.reasoning.set(id, addPart(state, cell))
}

/** Adds a tool call. The newest call with an id is the one that later events mean. */
export function addCall(
  state: ChatState,
  owner: MessageCell,
  init: Pick<ToolCallPart, 'id' | 'name'> & Partial<Omit<CallCell, 'kind' | 'index' | 'owner'>>,
): CallCell {
  const call: CallCell = {
    kind: 'call',
    owner,
    index: 0,
    stale: false,
    reopened: 0,
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
    repeats: 0,
    earlier: state.calls.get(init.id),
    doubted: false,
    interrupted: false,
    answered: false,
    outputSent: undefined,
    part: undefined,
    ...init,
  }
  const { id, approval } = addPart(state, call)
  state.calls.set(id, call)
  if (approval && isReleased(state.approvals.get(approval.id), call)) state.approvals.set(approval.id, call)
  if (!isTerminal(call.state)) state.open.add(call)
  enterAsked(state, call)
  return call
}

/** Whether the id of an approval may become that of another call's: nobody has it, or it has had its day. */
export function isReleased(holder: CallCell | undefined, { owner }: CallCell): boolean {
  if (!holder || isTerminal(holder.state)) return true
  return holder.owner.turn < owner.turn && !isAsked(holder)
}

function earlierOpen(state: ChatState, call: CallCell): CallCell | undefined {
  while (call.earlier && !state.open.has(call.earlier)) call.earlier = call.earlier.earlier
  return call.earlier
}

/**
 * The call that is meant by its id: of those that have no outcome yet, and the latest, the last one that fits. `oldest`: of several in one
 * turn the first, for what comes in the order of the calls.
 */
export function findCall(
  state: ChatState,
  id: string,
  fits: (call: CallCell) => boolean,
  oldest?: true,
): CallCell | undefined {
  let found: CallCell | undefined
  for (let call = state.calls.get(id); call; call = earlierOpen(state, call)) {
    if (!fits(call)) continue
    if (found && found.owner.turn !== call.owner.turn) break
    found = call
    if (!oldest) break
  }
  return found
}

/** A call that was streamed again unchanged turns out to be one of its own: something is said of it that the first has had already. */
export function takeRepeat(state: ChatState, toolCallId: string): CallCell | undefined {
  const before = state.calls.get(toolCallId)
  if (!before?.repeats) return undefined
  const { id, name, input, arguments: told, owner } = before
  return addCall(state, owner, {
    id,
    name,
    input,
    arguments: told,
    state: 'input-complete',
    repeats: before.repeats - 1,
  })
}

/** Moves a call to another state if the table allows it; says whether it did. */
export function moveCall(state: ChatState, call: CallCell, to: ToolCallState): boolean {
  if (!canMove(call.state, to)) return false
  leaveAsked(state, call)
  call.state = to
  enterAsked(state, call)
  if (isTerminal(to)) state.open.delete(call)
  touch(state, call)
  return true
}

function isAsked(call: CallCell): boolean {
  return call.state === 'approval-requested'
}

function enterAsked(state: ChatState, call: CallCell): void {
  if (!isAsked(call)) return
  state.asked.splice(placeAmong(state.asked, call), 0, call)
  changeAsked(state, call)
}

/** Where a call stands among those that are in the order of the conversation, by halves: a server decides how many wait. */
function placeAmong(calls: readonly CallCell[], { owner, index }: CallCell): number {
  let from = 0
  let to = calls.length
  while (from < to) {
    const middle = (from + to) >> 1
    const other = calls[middle]
    if (other && (other.owner.position - owner.position || other.index - index) < 0) from = middle + 1
    else to = middle
  }
  return from
}

function leaveAsked(state: ChatState, call: CallCell): void {
  if (!isAsked(call)) return
  const near = placeAmong(state.asked, call)
  const at = state.asked[near] === call ? near : state.asked.indexOf(call)
  state.asked.splice(at, 1)
  const { published } = state
  published.pendingChange = published.pendingChange === 'none' ? at : 'any'
}

/** A call waits for the person, and came or is another than it was. */
function changeAsked({ asked, published }: ChatState, call: CallCell): void {
  const { pending, pendingChange } = published
  const isMore = pendingChange === 'added' || (pendingChange === 'none' && asked.length > pending.length)
  published.pendingChange = isMore && asked.at(-1) === call ? 'added' : 'any'
}

/** Notes a change that listeners hear of at once. */
export function touch(state: ChatState, part: PartCell): void {
  grow(state, part)
  state.owed = 'change'
}

/** Notes that a text, a reasoning or arguments have grown: listeners may hear of it with the next frame. */
export function grow(state: ChatState, part: PartCell): void {
  if (part.kind !== 'fixed') part.part = undefined
  if (part.kind === 'call' && isAsked(part)) changeAsked(state, part)
  markStale(part)
  markDirty(state, part.owner)
  if (state.owed === 'nothing') state.owed = 'growth'
}

export function touchMessage(state: ChatState, cell: MessageCell): void {
  markDirty(state, cell)
  state.owed = 'change'
}

function markDirty(state: ChatState, cell: MessageCell): void {
  cell.dirty = true
  markUntold(state, cell)
  if (cell.unread) return
  cell.unread = true
  state.dirty.push(cell)
}

function markUntold(state: ChatState, cell: MessageCell): void {
  if (cell.untold) return
  cell.untold = true
  state.changed.push(cell)
}

export function markStale(part: PartCell): void {
  if (part.stale) return
  part.stale = true
  part.owner.stale.push(part)
}

function orderChanged(state: ChatState): void {
  state.published.messages = undefined
  state.published.ids = undefined
  state.owed = 'change'
}
