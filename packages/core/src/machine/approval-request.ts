import { isTerminal, type ToolCallApproval } from '../messages.js'
import { changed, frozen, parseJson, sameJson } from '../value.js'
import { findCall, isReleased, moveCall, setApproval, takeRepeat, withoutProblem } from './calls.js'
import { touch } from './changes.js'
import type { CallDraft } from './data.js'
import type { Outcome } from './effects.js'
import type { AskedApproval } from './read-approval.js'
import type { ChatState } from './state.js'

/** Folds a request into its call. All ways of asking end here, so asking twice in two ways is one request. */
export function askApproval(
  state: ChatState,
  asked: AskedApproval,
  call = callAskedAbout(state, asked),
): Outcome {
  const { approval } = asked
  if (!call) return 'unknown-id'
  const holder = state.approvals.get(approval.id)
  if (holder !== call && !isReleased(holder, call)) return 'illegal-step'
  if (call.approval) return isRepeated(call, call.approval, asked) ? undefined : markChanged(state, call)
  if (!moveCall(state, call, 'approval-requested')) return 'illegal-step'
  // Of a call whose run broke the server speaks again.
  call.interrupted = false
  call.approval = frozen(call.token === undefined ? approval : changed(approval, { token: call.token }))
  // Read anew: a page may have changed what it was shown while the arguments came.
  call.input = frozen(parseJson(call.arguments, call.input))
  state.approvals.set(approval.id, call)
  // What was still to be said of an earlier question with that id would be taken for this one.
  if (holder) state.unsent.delete(holder)
  if (differs(call, asked)) return markChanged(state, call)
  const { input } = call
  const mayMeanAnother = (other: CallDraft) => isUnasked(other) && !sameJson(other.input, input)
  if (!asked.input && findCall(state, call.id, mayMeanAnother)) doubt(state, call)
  else clearDoubt(state, call)
  return [
    {
      type: 'approval-requested',
      messageId: call.owner.id,
      toolCallId: call.id,
      toolName: call.name,
      input: call.input,
      approval: call.approval,
    },
  ]
}

/**
 * The call that a question is about. Where several have its id: the one that has the question already, the first that has none and is what
 * the question says it is, else the last.
 */
function callAskedAbout(state: ChatState, asked: AskedApproval): CallDraft | undefined {
  const { toolCallId: id, approval } = asked
  const holder = state.approvals.get(approval.id)
  if (holder?.id === id && !isTerminal(holder.state)) return holder
  const latest = state.calls.get(id)
  const isMeant = (call: CallDraft) => isUnasked(call) && !differs(call, asked)
  return (
    findCall(state, id, isMeant, true) ??
    findCall(state, id, isUnasked) ??
    (holder?.id === id ? holder : undefined) ??
    (latest?.approval && takeRepeat(state, id)) ??
    latest
  )
}

function isUnasked({ state, approval, interrupted }: CallDraft): boolean {
  return state === 'input-complete' && !approval && !interrupted
}

/**
 * The same request a second time (event and interrupt, a reconnect). What the person was shown is frozen: a request that differs
 * cannot be answered any more, instead of being swapped under the person's hand.
 */
function isRepeated(call: CallDraft, before: ToolCallApproval, asked: AskedApproval): boolean {
  const after = asked.approval
  return (
    before.id === after.id &&
    (['message', 'expiresAt', 'token', 'display'] as const).every((name) =>
      agrees(before[name], after[name]),
    ) &&
    !differs(call, asked)
  )
}

/** A later source may tell less than an earlier one, but not something else. */
function agrees(before: unknown, after: unknown): boolean {
  return before === undefined || after === undefined || sameJson(before, after)
}

function differs(call: CallDraft, { toolName = call.name, input, approval }: AskedApproval): boolean {
  return (
    toolName !== call.name ||
    !agrees(call.token, approval.token) ||
    (input !== undefined && !sameJson(input.value, call.input))
  )
}

/** Makes a pending request unanswerable, because what it asks is no longer what was shown. */
function markChanged(state: ChatState, call: CallDraft): Outcome {
  call.doubted = false
  if (call.state !== 'approval-requested' || call.approval?.problem) return undefined
  setApproval(state, call, { problem: 'approval-changed' })
  const message = `The request for "${call.id}" changed after it was shown; it cannot be answered.`
  return [{ type: 'warning', code: 'illegal-step', message }]
}

/** A question that may be about a later call with the same id cannot be answered, until that one has a question or an outcome of its own. */
export function doubt(state: ChatState, call: CallDraft): Outcome {
  const { doubted } = call
  const outcome = markChanged(state, call)
  call.doubted = doubted || outcome !== undefined
  return outcome
}

export function clearDoubt(state: ChatState, { id }: CallDraft): void {
  for (;;) {
    const call = findCall(state, id, ({ doubted }) => doubted)
    if (!call?.approval) return
    call.doubted = false
    call.approval = withoutProblem(call.approval)
    touch(state, call)
  }
}
