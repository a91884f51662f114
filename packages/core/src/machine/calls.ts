import { isTerminal, type ToolCallApproval, type ToolCallPart, type ToolCallState } from '../messages.js'
import { changed } from '../value.js'
import { enterAsked, isAsked, leaveAsked } from './asked.js'
import { addPart, touch } from './changes.js'
import type { CallDraft, MessageDraft } from './data.js'
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
  if (approval && isReleased(state.approvals.get(approval.id), call)) state.approvals.set(approval.id, call)
  enterState(state, call)
  return call
}

/** Removes a call from the indexes. */
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

/** Updates the indexes by state. */
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

/** Whether a call may take over an approval id: it is unused, or its call is done, or from an earlier turn and not pending. */
export function isReleased(holder: CallDraft | undefined, { owner }: CallDraft): boolean {
  if (!holder || isTerminal(holder.state)) return true
  return holder.owner.turn < owner.turn && !isAsked(holder)
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
