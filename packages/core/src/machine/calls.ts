import { isTerminal, type ToolCallApproval, type ToolCallPart, type ToolCallState } from '../messages.js'
import { changed } from '../value.js'
import { enterAsked, isAsked, leaveAsked } from './asked.js'
import { addPart, touch } from './changes.js'
import type { CallDraft, InterruptDraft, MessageDraft } from './data.js'
import type { ChatState } from './state.js'
import { canMove } from './transitions.js'

/** Adds a tool call. Later events with its id refer to the newest call. */
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
  if (approval && !isOvertaken(state, approval) && takeRequestId(state, approval.id))
    state.approvals.set(approval.id, call)
  enterState(state, call)
  return call
}

/** Whether another call that was loaded before holds the id of a request: one that is pending, or whose answer is not settled as this one's is. */
function isOvertaken(state: ChatState, { id, delivery }: ToolCallApproval): boolean {
  const holder = callAskedBy(state, id)
  return (
    holder !== undefined &&
    (isAsked(holder) || (delivery === 'settled' && holder.approval?.delivery !== delivery))
  )
}

/** The call that was added last is older than this one, with the same id, which stays the latest. */
export function putBehind(state: ChatState, latest: CallDraft): void {
  const older = state.calls.get(latest.id)
  if (older?.earlier !== latest) return
  older.earlier = latest.earlier
  latest.earlier = older
  state.calls.set(latest.id, latest)
}

export function dropCall(state: ChatState, call: CallDraft): void {
  leaveAsked(state, call)
  state.open.delete(call)
  state.executing.delete(call)
  state.unsent.delete(call)
  const earlier = earlierOpen(state, call)
  if (earlier && state.calls.get(call.id) === call) state.calls.set(call.id, earlier)
  else dropFrom(state.calls, call.id, call)
  if (call.approval) dropFrom(state.approvals, call.approval.id, call)
}

/** The call whose present request has that id. An earlier request for a call is over. */
export function callAskedBy(state: ChatState, approvalId: string): CallDraft | undefined {
  const call = state.approvals.get(approvalId)
  return call?.approval?.id === approvalId ? call : undefined
}

/** Removes an item from an index, unless the id now belongs to another. */
export function dropFrom<T>(index: Map<string, T>, id: string, part: T): void {
  if (index.get(id) === part) index.delete(id)
}

/** Moves a call to another state if that is legal; returns whether it did. */
export function moveCall(state: ChatState, call: CallDraft, to: ToolCallState): boolean {
  if (!canMove(call.state, to)) return false
  leaveAsked(state, call)
  call.state = to
  enterState(state, call)
  touch(state, call)
  return true
}

function enterState(state: ChatState, call: CallDraft): void {
  state.open[isTerminal(call.state) ? 'delete' : 'add'](call)
  state.executing[call.state === 'executing' ? 'add' : 'delete'](call)
  enterAsked(state, call)
}

/**
 * The call that an id refers to, among the latest call and those without an outcome: the last one that fits.
 * With `oldest`, the first one of its turn, for events that come in the order of the calls.
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

function earlierOpen(state: ChatState, call: CallDraft): CallDraft | undefined {
  while (call.earlier && !state.open.has(call.earlier)) call.earlier = call.earlier.earlier
  return call.earlier
}

/**
 * Frees the id of a request for a new one: the only place where an id changes hands. Some servers number their requests anew in each run. An
 * answer to the earlier request would then count for the new one, so it is not sent any more. A request that is pending is not replaced while
 * the user decides: one of an earlier run is cancelled, and its id is free once the server has that.
 */
export function takeRequestId(state: ChatState, id: string, by?: CallDraft): boolean {
  const holder = callAskedBy(state, id)
  if (!holder || holder === by) return true
  const { delivery } = holder.approval ?? {}
  if (isAsked(holder)) {
    if (state.run.phase === 'idle' || isOfOpenRun(state, holder)) return false
    moveCall(state, holder, 'cancelled')
    holder.doubted = false
    setApproval(state, holder, { delivery: 'waiting', problem: 'approval-changed' })
    state.unsent.add(holder)
  }
  if (holder.approval?.problem === 'approval-changed' && state.unsent.has(holder)) return false
  state.approvals.delete(id)
  if (delivery && delivery !== 'settled') withdrawAnswer(state, holder)
  return true
}

/** The answer, or cancellation, is not sent any more, or not again. */
export function withdrawAnswer(state: ChatState, call: CallDraft): void {
  const isUnclear = !isTerminal(call.state) && (call.approval?.delivery !== 'sent' || call.inDoubt)
  setApproval(state, call, { delivery: 'settled', ...(isUnclear && { problem: 'approval-interrupted' }) })
  if (call.outputSent === undefined) state.unsent.delete(call)
}

/** Whether it is still part of the conversation: messages may have been replaced while the run was open. */
export function isAttached(state: ChatState, item: CallDraft | InterruptDraft): boolean {
  if (item.kind === 'interrupt') return state.interrupts.get(item.interrupt.id) === item
  return state.messages.get(item.owner.id) === item.owner && item.owner.parts[item.index] === item
}

export function isOfOpenRun({ run }: ChatState, { owner, index }: CallDraft): boolean {
  if (run.phase === 'idle') return false
  const [messages, parts] = run.from
  return owner.position >= messages || (owner.position === messages - 1 && index >= parts)
}

/** A call that was streamed again unchanged turns out to be a separate one: an event arrived for it that the first call already had. */
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

export function setApproval(state: ChatState, call: CallDraft, change: Partial<ToolCallApproval>): void {
  if (!call.approval) return
  call.approval = changed(call.approval, change)
  touch(state, call)
}

export function withoutProblem({ problem: _, ...approval }: ToolCallApproval): ToolCallApproval {
  return approval
}
