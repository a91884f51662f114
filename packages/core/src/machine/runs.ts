import { CountersignError } from '../errors.js'
import { isTerminal } from '../messages.js'
import type { RunErrorEvent, RunFinishedEvent, RunStartedEvent } from '../protocol/events.js'
import { askApproval, readApprovalInterrupt } from './approvals.js'
import { moveCall, touchPart } from './cells.js'
import { type Effect, none } from './effects.js'
import type { CallCell, ChatState, FinishedRun, InterruptCell } from './state.js'
import { string } from './value.js'

/** A request goes out: what the server did not have yet goes with it. A run that broke off will not be taken up again. */
export function openRun(state: ChatState, runId: string): readonly Effect[] {
  if (state.run.phase === 'idle' && state.run.brokenOff) {
    for (const call of state.open) interruptCall(state, call)
  }
  const carried = [...state.unsent]
  for (const item of carried) markSent(state, item)
  state.unsent.clear()
  state.error = undefined
  state.run = { phase: 'submitted', runId, carried }
  state.owed = 'change'
  return none
}

/** A run that broke off goes on where it stopped. What it had taken along is under way again. */
export function rejoinRun(state: ChatState, runId: string): readonly Effect[] {
  const carried = [...state.unsent].filter(
    (item) => item.kind === 'call' && item.approval?.delivery === 'unknown',
  )
  for (const item of carried) {
    markSent(state, item)
    state.unsent.delete(item)
  }
  state.error = undefined
  state.run = { phase: 'streaming', runId, carried }
  state.owed = 'change'
  return none
}

function markSent(state: ChatState, item: CallCell | InterruptCell): void {
  if (item.kind === 'interrupt') {
    item.inDoubt = item.sent
    item.sent = true
    return
  }
  if (item.outputSent === false) item.outputSent = true
  else if (item.approval) {
    const { problem, ...approval } = item.approval
    item.inDoubt = approval.delivery === 'unknown'
    item.approval = { ...approval, delivery: 'sent', ...(isTerminal(item.state) && problem && { problem }) }
    touchPart(state, item.owner, item)
  }
}

export function startRun(state: ChatState, event: RunStartedEvent): readonly Effect[] {
  const carried = state.run.phase === 'idle' ? [] : state.run.carried
  state.run = { phase: 'streaming', runId: event.runId, carried }
  state.owed = 'change'
  return none
}

export function finishRun(state: ChatState, event: RunFinishedEvent): readonly Effect[] {
  const { outcome } = event
  const finish: FinishedRun = {
    runId: event.runId,
    reason: string(event.metadata?.finishReason) ?? string(event.finishReason),
    outcome: outcome?.type ?? 'success',
    pendingToolCallIds: outcome?.type === 'success' ? outcome.pendingToolCallIds : undefined,
  }
  state.run = state.run.phase === 'idle' ? { phase: 'idle', last: finish } : { ...state.run, finish }
  state.owed = 'change'
  if (outcome?.type !== 'interrupt') return none
  return outcome.interrupts.flatMap((interrupt) => {
    const asked = readApprovalInterrupt(interrupt)
    if (asked) return askApproval(state, asked)
    // One that was answered and is asked again wants another answer.
    const known = state.interrupts.get(interrupt.id)
    if (!known || known.sent) {
      state.interrupts.set(interrupt.id, { kind: 'interrupt', interrupt, response: undefined, sent: false })
    }
    return none
  })
}

export function failRun(state: ChatState, event: RunErrorEvent): readonly Effect[] {
  const failure = new CountersignError('run-error', event.message, {
    ...(event.code !== undefined && { code: event.code }),
  })
  if (state.run.phase === 'idle') state.error = failure
  else state.run = { ...state.run, failure }
  state.owed = 'change'
  return none
}

/** How a stream ended, as the caller saw it. */
export type RunEnd =
  | { readonly type: 'success' }
  | { readonly type: 'aborted' }
  /** `resumable`: the stream broke off and may yet be taken up where it stopped. */
  | { readonly type: 'failed'; readonly error: CountersignError; readonly resumable?: boolean }

export function closeRun(state: ChatState, end: RunEnd): readonly Effect[] {
  const { run } = state
  if (run.phase === 'idle') return none
  if (end.type === 'success') {
    state.run = run.finish ? { phase: 'idle', last: run.finish } : { phase: 'idle' }
    for (const item of run.carried) {
      if (item.kind === 'interrupt' && isAttached(state, item)) state.interrupts.delete(item.interrupt.id)
    }
  } else {
    const brokenOff = end.type === 'failed' && end.resumable === true
    state.run = { phase: 'idle', ...(brokenOff && { brokenOff }) }
    state.error = end.type === 'failed' ? end.error : undefined
    for (const item of run.carried) {
      if (isAttached(state, item)) returnUnsettled(state, item, run.phase === 'streaming')
    }
    if (!brokenOff) for (const call of state.open) interruptCall(state, call)
  }
  state.owed = 'change'
  return none
}

/** Whether it is still part of the conversation: messages may have been replaced while the run was open. */
function isAttached(state: ChatState, item: CallCell | InterruptCell): boolean {
  if (item.kind === 'interrupt') return state.interrupts.get(item.interrupt.id) === item
  return state.messages.get(item.owner.id) === item.owner && item.owner.parts[item.index] === item
}

/**
 * What a broken request took along. Before the server acknowledged it (RUN_STARTED) nothing was delivered; after that nobody knows
 * what became of an answer, so it is offered again only when the person asks for it. One that was in doubt before remains so.
 */
function returnUnsettled(state: ChatState, item: CallCell | InterruptCell, acknowledged: boolean): void {
  if (item.kind === 'interrupt') {
    item.sent = acknowledged || item.inDoubt === true
    state.unsent.add(item)
    return
  }
  if (item.outputSent) {
    item.outputSent = acknowledged
    if (!acknowledged) state.unsent.add(item)
    return
  }
  if (item.approval?.delivery !== 'sent') return
  item.approval = { ...item.approval, delivery: acknowledged || item.inDoubt ? 'unknown' : 'waiting' }
  state.unsent.add(item)
  touchPart(state, item.owner, item)
}

/** A call whose run broke: half of its arguments will never come, and its result may never come. */
function interruptCall(state: ChatState, call: CallCell): void {
  if (call.state === 'awaiting-input' || call.state === 'input-streaming') {
    call.reader = undefined
    call.error = {
      message: 'The run ended before its arguments were complete.',
      code: 'incomplete-arguments',
    }
    moveCall(state, call, 'cancelled')
  } else if (call.state === 'input-complete') call.interrupted = true
}
