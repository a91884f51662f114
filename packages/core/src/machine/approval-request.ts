import { isTerminal, type ToolCallApproval } from '../messages.js'
import { changed, frozen, isRecord, parseJson, sameJson } from '../value.js'
import { isAsked } from './asked.js'
import {
  addCall,
  callAskedBy,
  findCall,
  isOfOpenRun,
  moveCall,
  setApproval,
  takeRepeat,
  takeRequestId,
  withdrawAnswer,
  withoutProblem,
} from './calls.js'
import { touch } from './changes.js'
import type { CallDraft, MessageDraft } from './data.js'
import { addMessage, isActivity } from './drafts.js'
import type { Outcome } from './effects.js'
import { dropInterrupt } from './interrupts.js'
import type { AskedApproval } from './read-approval.js'
import type { ChatState } from './state.js'
import { canMove } from './transitions.js'

/**
 * Attaches an approval request to its call. Events, interrupts and snapshots all end here, so a request that arrives twice stays one.
 * `unknown-id`: the call is not here.
 */
export function askApproval(
  state: ChatState,
  asked: AskedApproval,
  call = presentCall(state, asked, callAskedAbout(state, asked)),
  isRaised?: 'live' | 'at-end',
): Outcome {
  const isAnew = isRaised && call && isRaisedAgain(state, call, asked, isRaised === 'live')
  if (isAnew) takeAnswerBack(state, call)
  else if (isRaised === 'live' && call?.askedIn !== undefined && state.run.phase !== 'idle')
    call.repeated = { asked, runId: state.run.runId }
  const outcome = attachRequest(state, asked, call, isAnew, isRaised === 'live')
  // Even if its request can't be shown: an answer to that of another call would be taken for one to this.
  if (call) takeRequestId(state, asked.approval.id, call)
  return outcome
}

function attachRequest(
  state: ChatState,
  asked: AskedApproval,
  call: CallDraft | undefined,
  isAnew = false,
  isLive = false,
): Outcome {
  const { approval } = asked
  if (!call) return 'unknown-id'
  // The request that it had before this one.
  if (state.approvals.get(approval.id) === call && call.approval?.id !== approval.id) return undefined
  if (call.approval && !isAnew && !isAskedAnew(state, call, approval))
    return isRepeated(call, call.approval, asked) ? undefined : markChanged(state, call)
  if (!canMove(call.state, 'approval-requested')) return 'illegal-step'
  // The token that came with the call was that of its first request.
  if (call.approval) call.token = undefined
  // If its request can't be shown, the turn does not wait for it. Otherwise the server has sent something new about a call whose run broke.
  const isSwapped = supersede(state, approval.id, call)
  call.interrupted = !takeRequestId(state, approval.id, call)
  touch(state, call)
  if (call.interrupted || !moveCall(state, call, 'approval-requested')) return 'illegal-step'
  call.approval = frozen(call.token === undefined ? approval : changed(approval, { token: call.token }))
  // Parsed again: the page may have mutated the value it was shown while the arguments streamed.
  call.input = frozen(parseJson(call.arguments, call.input))
  call.askedIn = state.run.phase === 'idle' ? undefined : state.run.runId
  state.approvals.set(approval.id, call)
  dropInterrupt(state, state.interrupts.get(approval.id))
  if (isSwapped || differs(call, asked)) return markChanged(state, call)
  const { input } = call
  const mayMeanAnother = (other: CallDraft) =>
    (isUnasked(state, other) || (other.unclear === true && other.doubted)) && !sameJson(other.input, input)
  if (!asked.input && findCall(state, call.id, mayMeanAnother)) {
    // Those listed at the end come in the order of the calls; events need not.
    call.unclear ||= isLive
    doubt(state, call)
  } else clearDoubt(state, call)
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

/** The server has the answer to the first request, and requests another one: from a second approver, or for a second step. */
function isAskedAnew({ unsent }: ChatState, call: CallDraft, { id }: ToolCallApproval): boolean {
  return call.state === 'approval-responded' && call.approval?.id !== id && !unsent.has(call) && !call.ready
}

/**
 * A server that raises a request again, in a later run than it did before, waits for another answer: it did not take the one it was sent, or
 * goes on asking after a message cancelled the request. In the run that the answer went out with, this is decided at the end of the run: an
 * event may repeat what happened before the answer.
 */
function isRaisedAgain(
  state: ChatState,
  call: CallDraft,
  { approval: { id } }: AskedApproval,
  isLive: boolean,
): boolean {
  const { run, unsent } = state
  const { approval, askedIn } = call
  if (approval?.id !== id || state.approvals.get(id) !== call) return false
  if (run.phase === 'idle' || run.runId === askedIn || isOfOpenRun(state, call)) return false
  if (call.ready || call.answered || unsent.has(call) || (isLive && run.carried.includes(call))) return false
  return call.state === 'approval-responded'
    ? approval.problem !== 'approval-changed'
    : call.state === 'cancelled' && approval.delivery === 'sent'
}

/**
 * A request of an earlier run is pending, and this run uses its id for another call. The user may be about to answer what they see, so the new
 * request is shown but can't be answered either. Once a message has cancelled it, the server can raise it again.
 */
function supersede(state: ChatState, id: string, by: CallDraft): boolean {
  const holder = callAskedBy(state, id)
  if (!holder || holder === by || !isAsked(holder) || state.run.phase === 'idle') return false
  if (isOfOpenRun(state, holder)) return false
  moveCall(state, holder, 'cancelled')
  holder.doubted = false
  setApproval(state, holder, { delivery: 'settled', problem: 'approval-changed' })
  state.approvals.delete(id)
  return true
}

/** The server does not use the answer that it was sent: what may still be said of it counts for nothing. */
function takeAnswerBack(state: ChatState, call: CallDraft): void {
  const { run } = state
  if (run.phase !== 'idle') state.run = changed(run, { carried: run.carried.filter((item) => item !== call) })
  call.state = 'input-complete'
  Object.assign(call, { inDoubt: undefined, mayHaveArrived: undefined, error: undefined })
}

/**
 * Finds the call that an approval request belongs to. If several calls have the id, it is the one that
 * already has this request, else the first one without a request that matches it, else the latest.
 */
function callAskedAbout(state: ChatState, asked: AskedApproval): CallDraft | undefined {
  const { toolCallId: id, approval } = asked
  const holder = state.approvals.get(approval.id)
  const latest = state.calls.get(id)
  const isMeant = (call: CallDraft) => isUnasked(state, call) && !differs(call, asked)
  const isWithdrawn =
    holder?.approval?.problem === 'approval-changed' && holder.approval.delivery === 'settled'
  if (holder?.id === id && !isTerminal(holder.state) && !isWithdrawn) {
    // A server that numbers calls and requests anew in each run means the call of this run.
    const isSame = holder.approval?.token !== undefined && holder.approval.token === approval.token
    const isNew = !isSame && !isOfOpenRun(state, holder)
    const isOfRun = (call: CallDraft) => isOfOpenRun(state, call) && isMeant(call)
    const ofRun = isNew ? findCall(state, id, isOfRun, true) : undefined
    // What the user was shown never becomes something else: it is shown as another call.
    const isOther = asked.toolName && asked.input && isAsked(holder) && isLeftBehind(state, holder, asked)
    return ofRun ?? (isOther ? findCall(state, id, isMeant, true) : holder)
  }
  return (
    findCall(state, id, isMeant, true) ??
    findCall(state, id, (call) => isUnasked(state, call)) ??
    (holder?.id === id && !isLeftBehind(state, holder, asked) ? holder : undefined) ??
    (latest?.approval && takeRepeat(state, id)) ??
    (latest && isLeftBehind(state, latest, asked) ? undefined : latest)
  )
}

/**
 * The call, if the request can be shown with it. A stretch of the stream may have been lost, and with it the events of the call: then it is
 * what the request itself says of it. Without its name and arguments there is none: nobody can approve what is not shown.
 */
function presentCall(
  state: ChatState,
  { toolCallId: id, toolName, input, approval }: AskedApproval,
  found: CallDraft | undefined,
): CallDraft | undefined {
  const isHere = found && (found.approval?.id === approval.id || state.approvals.get(approval.id) === found)
  if (isHere || state.run.phase === 'idle') return found
  if (found && (isAsked(found) || canMove(found.state, 'approval-requested'))) return found
  const name = toolName ?? (found?.reader && found.name)
  if (name === undefined || !isRecord(input?.value)) return undefined
  const told = { arguments: JSON.stringify(input.value), input: input.value }
  if (!found?.reader || found.name !== name) {
    return addCall(state, lastReply(state, id), { id, name, ...told, state: 'input-complete' })
  }
  moveCall(state, found, 'input-complete')
  return Object.assign(found, told, { reader: undefined })
}

/** The last message, if it is a reply in this turn; otherwise a new one. */
function lastReply(state: ChatState, id: string): MessageDraft {
  const last = state.order.at(-1)
  if (last?.role === 'assistant' && last.turn === state.turn && !isActivity(last)) return last
  let own = id
  for (let n = 2; state.messages.has(own); n++) own = `${id}-${n}`
  return addMessage(state, { id: own, role: 'assistant' })
}

/**
 * A call of an earlier run is not what a request is about that says other arguments. Nor is one of a broken run, unless either the open run
 * or the request says the same.
 */
function isLeftBehind(state: ChatState, call: CallDraft, asked: AskedApproval): boolean {
  const { run } = state
  if (run.phase === 'idle' || isOfOpenRun(state, call)) return false
  return saysOther(call, asked) || (call.interrupted && !asked.input && call.saidIn !== run.runId)
}

/**
 * Shows a request at the end of a run, which the next request must answer. A call takes one at a time: another one for it that came
 * `together` with the first is shown as an interrupt. If it says other arguments, or the call has ended, it is shown as another call.
 */
export function askAtEnd(
  state: ChatState,
  asked: AskedApproval,
  together: ReadonlySet<string>,
): 'apart' | readonly Outcome[] {
  const call = callAskedAbout(state, asked)
  if (!call || !isTaken(state, call, asked)) return [askApproval(state, asked, undefined, 'at-end')]
  if (together.has(call.approval?.id ?? '') && !isTerminal(call.state) && !differs(call, asked))
    return 'apart'
  const other = presentCall(state, asked, undefined)
  return [markChanged(state, call), other ? askApproval(state, asked, other) : 'unknown-id']
}

/** An event has repeated a request whose answer this run carried, and nothing has come of the answer: the server still waits for one. */
export function askRepeated(state: ChatState): Outcome[] {
  const { run } = state
  if (run.phase === 'idle') return []
  return run.carried.map((item) => {
    const repeated = item.kind === 'call' && item.repeated?.runId === run.runId && item.repeated
    return repeated && isRaisedAgain(state, item, repeated.asked, false)
      ? askApproval(state, repeated.asked, item, 'at-end')
      : undefined
  })
}

/** Whether a call has ended or waits for the answer to another request. */
function isTaken(state: ChatState, call: CallDraft, { approval: { id } }: AskedApproval): boolean {
  if (state.run.phase === 'idle' || state.approvals.get(id) === call) return false
  return call.approval ? !isAskedAnew(state, call, { ...call.approval, id }) : isTerminal(call.state)
}

/** Of the calls of broken runs, none is meant. In the open run, only those whose request could not be shown are marked so. */
function isUnasked(state: ChatState, call: CallDraft): boolean {
  return call.state === 'input-complete' && !call.approval && (!call.interrupted || isOfOpenRun(state, call))
}

/**
 * The same request a second time (event and interrupt, or after a reconnect). What the user was shown is
 * frozen: a request that differs can no longer be answered, rather than being swapped while the user decides.
 */
function isRepeated(call: CallDraft, before: ToolCallApproval, asked: AskedApproval): boolean {
  const after = asked.approval
  return (
    before.id === after.id &&
    (['message', 'expiresAt', 'token', 'display', 'mandates', 'preview'] as const).every((name) =>
      agrees(before[name], after[name]),
    ) &&
    !differs(call, asked)
  )
}

/** A later source may carry less than an earlier one, but must not contradict it. */
function agrees(before: unknown, after: unknown): boolean {
  return before === undefined || after === undefined || sameJson(before, after)
}

function differs(call: CallDraft, asked: AskedApproval): boolean {
  return saysOther(call, asked) || !agrees(call.token, asked.approval.token)
}

function saysOther(call: CallDraft, { toolName = call.name, input }: AskedApproval): boolean {
  return toolName !== call.name || (input !== undefined && !sameJson(input.value, call.input))
}

/** Makes a pending request unanswerable, because it no longer matches what was shown. An answer to it is not sent any more. */
export function markChanged(state: ChatState, call: CallDraft): Outcome {
  call.doubted = false
  const isAnswered = call.state === 'approval-responded' && call.approval?.delivery !== 'settled'
  if (isAnswered) withdrawAnswer(state, call)
  else if (call.state !== 'approval-requested' || call.approval?.problem) return undefined
  setApproval(state, call, { problem: 'approval-changed' })
  const message = `The request for "${call.id}" changed after it was shown; it cannot be answered.`
  return [{ type: 'warning', code: 'illegal-step', message }]
}

/** A request that may belong to a later call with the same id can't be answered until that call has its own request or outcome. */
export function doubt(state: ChatState, call: CallDraft): Outcome {
  const { doubted } = call
  const outcome = markChanged(state, call)
  call.doubted = doubted || outcome !== undefined
  return outcome
}

/** Not while another call may be meant, such as one of a broken run, which gets neither. */
export function clearDoubt(state: ChatState, { id }: CallDraft): void {
  for (;;) {
    const call = findCall(state, id, ({ doubted }) => doubted)
    if (!call?.approval) return
    const isOther = (other: CallDraft) =>
      other.state === 'input-complete' && !other.approval && !sameJson(other.input, call.input)
    if (findCall(state, id, isOther)) return
    call.doubted = false
    call.approval = withoutProblem(call.approval)
    touch(state, call)
  }
}
