import { isTerminal, type ToolCallApproval, type ToolCallPart, type ToolCallState } from '../messages.js'
import { changed } from '../value.js'
import { enterAsked, isAsked, leaveAsked } from './asked.js'
import { addPart, touch } from './changes.js'
import type { CallDraft, MessageDraft } from './data.js'
import type { ChatState } from './state.js'
import { canMove } from './transitions.js'

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
  enterState(state, call)
  return call
}

/** Takes a call out of the indexes. */
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

/** Takes something out of an index, unless something else has its id by now. */
export function dropFrom<T>(index: Map<string, T>, id: string, part: T): void {
  if (index.get(id) === part) index.delete(id)
}

/** Moves a call to another state if the table allows it; says whether it did. */
export function moveCall(state: ChatState, call: CallDraft, to: ToolCallState): boolean {
  if (!canMove(call.state, to)) return false
  leaveAsked(state, call)
  call.state = to
  enterState(state, call)
  touch(state, call)
  return true
}

/** Calls are found by how far they are. */
function enterState(state: ChatState, call: CallDraft): void {
  state.open[isTerminal(call.state) ? 'delete' : 'add'](call)
  state.executing[call.state === 'executing' ? 'add' : 'delete'](call)
  enterAsked(state, call)
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

function earlierOpen(state: ChatState, call: CallDraft): CallDraft | undefined {
  while (call.earlier && !state.open.has(call.earlier)) call.earlier = call.earlier.earlier
  return call.earlier
}

/** Whether the id of an approval may become that of another call's: nobody has it, or it has had its day. */
export function isReleased(holder: CallDraft | undefined, { owner }: CallDraft): boolean {
  if (!holder || isTerminal(holder.state)) return true
  return holder.owner.turn < owner.turn && !isAsked(holder)
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

export function setApproval(state: ChatState, call: CallDraft, change: Partial<ToolCallApproval>): void {
  if (!call.approval) return
  call.approval = changed(call.approval, change)
  touch(state, call)
}

export function withoutProblem({ problem: _, ...approval }: ToolCallApproval): ToolCallApproval {
  return approval
}
