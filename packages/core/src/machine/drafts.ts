import {
  isTerminal,
  type MessagePart,
  type ReasoningPart,
  type TextPart,
  type ToolCallPart,
  type ToolCallState,
  type UIMessage,
} from '../messages.js'
import type {
  CallDraft,
  End,
  FixedDraft,
  MessageDraft,
  PartDraft,
  ReasoningDraft,
  TextDraft,
} from './data.js'
import { setPublished } from './read.js'
import type { ChatState } from './state.js'
import { canMove } from './transitions.js'

/** Adds a message at the end; the caller has made sure that the id is new. */
export function addMessage(
  state: ChatState,
  { id, role, metadata, createdAt }: Pick<UIMessage, 'id' | 'role' | 'metadata' | 'createdAt'>,
): MessageDraft {
  if (role === 'user') state.turn++
  const draft: MessageDraft = {
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
    unnotified: false,
    unpublished: false,
  }
  state.order.push(draft)
  state.messages.set(id, draft)
  // the messages before it stay where they are, and as they were published
  state.published.ids = undefined
  touchMessage(state, draft)
  return draft
}

/** Gives a message that held only reasoning the id of the assistant message it turned out to belong to. */
export function renameMessage(state: ChatState, draft: MessageDraft, id: string): void {
  state.messages.delete(draft.id)
  state.changed.push({ id: draft.id, unnotified: true })
  draft.id = id
  draft.provisional = false
  state.messages.set(id, draft)
  orderChanged(state)
  touchMessage(state, draft)
}

/** Drops every message that `keep` refuses, with its calls, approvals and whatever of them was not sent yet. */
export function retainMessages(state: ChatState, keep: (draft: MessageDraft) => boolean): void {
  const kept = state.order.filter(keep)
  if (kept.length === state.order.length) return
  const staying = new Set(kept)
  for (const draft of state.order) {
    if (staying.has(draft)) continue
    state.messages.delete(draft.id)
    markUntold(state, draft)
    for (const part of draft.parts) dropPart(state, part)
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
  const dropped = new Set<MessageDraft>()
  for (let at = state.order.length - 1; at >= Math.max(count - 1, 0); at--) {
    const draft = state.order[at]
    if (draft?.role !== 'assistant') break
    const kept = Math.max(at < count ? from : 0, draft.parts.findLastIndex(isLasting) + 1)
    if (kept === 0 && at >= count) {
      dropped.add(draft)
      continue
    }
    if (kept === draft.parts.length) break
    for (const part of draft.parts.slice(kept)) dropPart(state, part)
    keepParts(state, draft, draft.parts.slice(0, kept))
    Object.assign(draft, { text: undefined, streaming: false })
    break
  }
  retainMessages(state, (draft) => !dropped.has(draft))
}

function isLasting(part: PartDraft): boolean {
  if (part.kind === 'call') return !part.reader && part.error?.code !== 'incomplete-arguments'
  return part.kind === 'fixed' && part.part.type === 'tool-result'
}

/** Leaves a message no other parts than these. */
export function keepParts(state: ChatState, draft: MessageDraft, parts: PartDraft[]): void {
  setPublished(draft, undefined)
  draft.parts = parts
  draft.sources = undefined
  parts.forEach((part, index) => {
    part.index = index
  })
  touchMessage(state, draft)
}

/** Puts messages into a new order. */
function setOrder(state: ChatState, order: MessageDraft[]): void {
  let turn = 0
  order.forEach((draft, position) => {
    if (draft.role === 'user') turn++
    draft.position = position
    draft.turn = turn
  })
  state.order = order
  state.turn = turn
  // names may be free again
  state.repeats.clear()
  orderChanged(state)
}

/** Takes a part out of the indexes. */
export function dropPart(state: ChatState, part: PartDraft): void {
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
function addPart<Draft extends PartDraft>(state: ChatState, draft: Draft): Draft {
  const { owner } = draft
  if (draft.kind !== 'text') owner.text = undefined
  draft.index = owner.parts.length
  owner.parts.push(draft)
  markStale(draft)
  touchMessage(state, owner)
  return draft
}

export function addText(state: ChatState, owner: MessageDraft, text: string, part?: TextPart): TextDraft {
  return addPart(state, { kind: 'text', owner, index: 0, stale: false, text, part })
}

export function addFixed(state: ChatState, owner: MessageDraft, part: MessagePart): FixedDraft {
  const draft = addPart(state, { kind: 'fixed', owner, index: 0, stale: false, part })
  if (part.type === 'tool-result' && !state.results.has(part.id)) state.results.set(part.id, draft)
  return draft
}

/** Adds a part that is finished, as it is. */
export function addDone(state: ChatState, owner: MessageDraft, part: MessagePart): void {
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
  owner: MessageDraft,
  { id, text, encryptedValue, metadata }: Omit<ReasoningPart, 'type'>,
  part?: ReasoningPart,
): void {
  const draft: ReasoningDraft = {
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
  state.reasoning.set(id, addPart(state, draft))
}

/** Adds a tool call. The newest call with an id is the one that later events mean. */
export function addCall(
  state: ChatState,
  owner: MessageDraft,
  init: Pick<ToolCallPart, 'id' | 'name'> & Partial<Omit<CallDraft, 'kind' | 'index' | 'owner'>>,
): CallDraft {
  const call: CallDraft = {
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
export function isReleased(holder: CallDraft | undefined, { owner }: CallDraft): boolean {
  if (!holder || isTerminal(holder.state)) return true
  return holder.owner.turn < owner.turn && !isAsked(holder)
}

function earlierOpen(state: ChatState, call: CallDraft): CallDraft | undefined {
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
  fits: (call: CallDraft) => boolean,
  oldest?: true,
): CallDraft | undefined {
  let found: CallDraft | undefined
  for (let call = state.calls.get(id); call; call = earlierOpen(state, call)) {
    if (!fits(call)) continue
    if (found && found.owner.turn !== call.owner.turn) break
    found = call
    if (!oldest) break
  }
  return found
}

/** A call that was streamed again unchanged turns out to be one of its own: something is said of it that the first has had already. */
export function takeRepeat(state: ChatState, toolCallId: string): CallDraft | undefined {
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
export function moveCall(state: ChatState, call: CallDraft, to: ToolCallState): boolean {
  if (!canMove(call.state, to)) return false
  leaveAsked(state, call)
  call.state = to
  enterAsked(state, call)
  if (isTerminal(to)) state.open.delete(call)
  touch(state, call)
  return true
}

function isAsked(call: CallDraft): boolean {
  return call.state === 'approval-requested'
}

function enterAsked(state: ChatState, call: CallDraft): void {
  if (!isAsked(call)) return
  state.asked.splice(placeAmong(state.asked, call), 0, call)
  changeAsked(state, call)
}

/** Where a call stands among those that are in the order of the conversation, by halves: a server decides how many wait. */
function placeAmong(calls: readonly CallDraft[], { owner, index }: CallDraft): number {
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

function leaveAsked(state: ChatState, call: CallDraft): void {
  if (!isAsked(call)) return
  const near = placeAmong(state.asked, call)
  const at = state.asked[near] === call ? near : state.asked.indexOf(call)
  state.asked.splice(at, 1)
  const { published } = state
  published.pendingChange = published.pendingChange === 'none' ? at : 'any'
}

/** A call waits for the person, and came or is another than it was. */
function changeAsked({ asked, published }: ChatState, call: CallDraft): void {
  const { pending, pendingChange } = published
  const isMore = pendingChange === 'added' || (pendingChange === 'none' && asked.length > pending.length)
  published.pendingChange = isMore && asked.at(-1) === call ? 'added' : 'any'
}

/** Notes a change that listeners hear of at once. */
export function touch(state: ChatState, part: PartDraft): void {
  grow(state, part)
  state.pendingNotification = 'change'
}

/** Notes that a text, a reasoning or arguments have grown: listeners may hear of it with the next frame. */
export function grow(state: ChatState, part: PartDraft): void {
  if (part.kind !== 'fixed') part.part = undefined
  if (part.kind === 'call' && isAsked(part)) changeAsked(state, part)
  markStale(part)
  markDirty(state, part.owner)
  if (state.pendingNotification === 'nothing') state.pendingNotification = 'growth'
}

export function touchMessage(state: ChatState, draft: MessageDraft): void {
  markDirty(state, draft)
  state.pendingNotification = 'change'
}

function markDirty(state: ChatState, draft: MessageDraft): void {
  draft.dirty = true
  markUntold(state, draft)
  if (draft.unpublished) return
  draft.unpublished = true
  state.dirty.push(draft)
}

function markUntold(state: ChatState, draft: MessageDraft): void {
  if (draft.unnotified) return
  draft.unnotified = true
  state.changed.push(draft)
}

export function markStale(part: PartDraft): void {
  if (part.stale) return
  part.stale = true
  part.owner.stale.push(part)
}

function orderChanged(state: ChatState): void {
  state.published.messages = undefined
  state.published.ids = undefined
  state.pendingNotification = 'change'
}
