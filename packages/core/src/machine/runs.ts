import { CountersignError } from '../errors.js'
import { isTerminal } from '../messages.js'
import type { Interrupt } from '../protocol/events.js'
import { asString, changed, getCountersignMetadata, omitUndefined } from '../value.js'
import { reopen } from './approval-answer.js'
import { askApproval, askAtEnd, askRepeated } from './approval-request.js'
import { isAttached, moveCall, withoutProblem } from './calls.js'
import { touch } from './changes.js'
import type { CallDraft, FinishedRun, InterruptDraft, RunState } from './data.js'
import { endOf } from './drafts.js'
import { effectsOf, type Outcome } from './effects.js'
import { askInterrupt, askUnseen, closeLiveInterrupts, reopenInterrupt } from './interrupts.js'
import { type AskedApproval, readApprovalInterrupt } from './read-approval.js'
import type { ChatState, StepTable } from './state.js'
import { subagentMetadata } from './subagents.js'

export const incomplete = {
  message: 'The stream ended before its arguments did. It may have run, unless it still needed an approval.',
  code: 'incomplete-arguments',
}

/** Steps for runs: what a request carries, and what becomes of it. */
export const runSteps = {
  /** A request goes out and carries everything unsent. A run that broke off will no longer be rejoined. */
  'run-opened'(state, { runId, again }) {
    const { run } = state
    if (run.phase === 'idle' && run.brokenOff) settleCalls(state, true)
    open(state, { phase: 'submitted', runId, carried: [...state.unsent], again, from: endOf(state) })
    state.unsent.clear()
    return undefined
  },
  /** A run that broke off is rejoined. What it had carried is in transit again: all of it, if no event of the run has arrived. */
  'run-rejoined'(state, { runId, from, isUnheard }) {
    const carried = [...state.unsent].filter((item) => {
      if (isUnheard) return item.mayHaveArrived
      return item.kind === 'interrupt' ? item.sent : item.approval?.delivery === 'unknown'
    })
    const phase = isUnheard ? 'submitted' : 'streaming'
    open(state, { phase, runId, carried, from: from ?? state.run.from ?? endOf(state) })
    for (const item of carried) state.unsent.delete(item)
    return undefined
  },
  'connection-changed'(state, { isLost }) {
    if (state.run.phase !== 'idle') setRun(state, changed(state.run, { isLost }))
    return undefined
  },
  RUN_STARTED(state, { runId }) {
    const { carried = [], again } = state.run.phase === 'idle' ? {} : state.run
    setRun(state, { phase: 'streaming', runId, carried, again, from: endOf(state) })
    return undefined
  },
  RUN_FINISHED(state, event) {
    const { outcome, usage = [] } = event
    state.usage = usage
    const finish: FinishedRun = {
      runId: event.runId,
      reason: asString(event.metadata?.finishReason) ?? asString(event.finishReason),
      outcome: outcome?.type ?? 'success',
      pendingToolCallIds: outcome?.type === 'success' ? outcome.pendingToolCallIds : undefined,
      result: event.result,
    }
    setRun(
      state,
      state.run.phase === 'idle' ? { phase: 'idle', last: finish } : changed(state.run, { finish }),
    )
    const interrupts = outcome?.type === 'interrupt' ? outcome.interrupts : []
    const together = new Set(interrupts.map(({ id }) => id))
    const effects = interrupts.flatMap((interrupt) => {
      const asked = readApprovalInterrupt(interrupt)
      if (asked) attribute(state, asked.toolCallId, interrupt)
      const outcomes = asked ? askAtEnd(state, asked, together) : 'apart'
      if (!asked || outcomes === 'apart') return effectsOf(event, askInterrupt(state, interrupt))
      return outcomes.flatMap((one) => effectsOf(event, orUnseen(state, asked, one, false)))
    })
    if (outcome?.type === 'cancelled') return effects
    return [...effects, ...askRepeated(state).flatMap((one) => effectsOf(event, one))]
  },
  RUN_ERROR(state, { message, code, metadata, usage = [] }) {
    state.usage = usage
    const { retryable, retryAfter } = getCountersignMetadata(metadata)
    const failure = new CountersignError('run-error', message, omitUndefined({ code, retryable, retryAfter }))
    if (state.run.phase === 'idle') state.error = failure
    setRun(state, state.run.phase === 'idle' ? state.run : changed(state.run, { failure }))
    return undefined
  },
  'run-closed'(state, { end, uncertain = false }) {
    const { run } = state
    if (run.phase === 'idle') return undefined
    const brokenOff = end.type === 'failed' && end.resumable && run.runId
    if (!brokenOff) closeLiveInterrupts(state)
    const carried = run.carried.filter((item) => isAttached(state, item))
    if (!brokenOff) settleCalls(state, end.type !== 'success' || run.finish?.outcome === 'cancelled')
    if (end.type === 'success') {
      setRun(state, omitUndefined({ phase: 'idle' as const, last: run.finish }))
      for (const item of carried) {
        if (item.kind === 'interrupt') state.interrupts.delete(item.interrupt.id)
        // The server has said nothing about it.
        else if (item.inDoubt && item.state === 'approval-responded' && !item.ready)
          returnUnsettled(state, item, true)
      }
      return undefined
    }
    setRun(state, { phase: 'idle', brokenOff, ...(end.type === 'failed' && { from: run.from }) })
    state.error = end.type === 'failed' ? end.error : undefined
    const began = run.phase === 'streaming'
    const refusal =
      end.type === 'failed' && !began && isRefusedWhole(end.error) ? end.error.message : undefined
    for (const item of carried) {
      if (refusal === undefined || item.mayHaveArrived) returnUnsettled(state, item, began, uncertain)
      else takeBack(state, item, refusal)
    }
    return undefined
  },
} satisfies Partial<StepTable>

/** Shows an approval request with its call while the run is open; if that is not here, without it. */
export function askLive(state: ChatState, asked: AskedApproval): Outcome {
  return orUnseen(state, asked, askApproval(state, asked, undefined, 'live'), true)
}

function orUnseen(state: ChatState, asked: AskedApproval, outcome: Outcome, isLive: boolean): Outcome {
  return outcome === 'unknown-id' ? askUnseen(state, asked, isLive) : outcome
}

/** AG-UI: an interrupt of a subagent names the subagent. */
function attribute(state: ChatState, toolCallId: string, interrupt: Interrupt): void {
  const call = state.calls.get(toolCallId)
  if (!call || interrupt.subagentRunId === undefined || call.metadata?.subagent) return
  call.metadata = { ...call.metadata, ...subagentMetadata(state, interrupt) }
  touch(state, call)
}

function setRun(state: ChatState, run: RunState): void {
  state.run = run
  state.pendingNotification = 'change'
}

function open(state: ChatState, run: Exclude<RunState, { phase: 'idle' }>): void {
  for (const item of run.carried) markSent(state, item, run.runId)
  state.error = undefined
  setRun(state, run)
}

function markSent(state: ChatState, item: CallDraft | InterruptDraft, runId: string): void {
  if (item.kind === 'interrupt') {
    item.inDoubt = item.sent
    item.sent = true
  } else if (item.outputSent === false) item.outputSent = true
  else if (item.approval) {
    const { problem, delivery } = item.approval
    item.inDoubt = delivery === 'unknown'
    const approval = problem && !isTerminal(item.state) ? withoutProblem(item.approval) : item.approval
    item.approval = changed(approval, {
      delivery: 'sent',
      ...(approval.approved && { sentIn: approval.sentIn ?? runId }),
    })
    touch(state, item)
  }
}

/**
 * Returns what a broken request carried. If the server had not acknowledged it (RUN_STARTED), it was not delivered. Otherwise it is
 * unknown whether an answer arrived, so it is sent again only if the user asks for it. If that was already unknown before, it stays so.
 */
function returnUnsettled(
  state: ChatState,
  item: CallDraft | InterruptDraft,
  acknowledged: boolean,
  uncertain = false,
): void {
  item.mayHaveArrived = true
  const inDoubt = acknowledged || uncertain || item.inDoubt === true
  if (item.kind === 'interrupt') item.sent = inDoubt
  else if (item.outputSent) {
    item.outputSent = acknowledged
    if (acknowledged) return
  } else if (item.approval?.delivery === 'sent') {
    item.approval = changed(item.approval, { delivery: inDoubt ? 'unknown' : 'waiting' })
    touch(state, item)
  } else return
  state.unsent.add(item)
}

/**
 * Whether a server or proxy refused a request for its form or size before using any of it: the same request
 * would be refused again. Over a socket, a run that never began reports this with an error code of its own.
 */
export function isRefusedWhole(error: CountersignError | undefined): boolean {
  const refusals: readonly unknown[] = ['invalid-request', 'request-too-large', 400, 413, 422]
  return refusals.includes(error?.data.status ?? error?.data.code)
}

/** An answer that no server has seen can be given again; a cancellation and the output of a client tool are sent again. */
function takeBack(state: ChatState, item: CallDraft | InterruptDraft, message: string): void {
  if (item.kind === 'interrupt' && item.response && 'payload' in item.response)
    reopenInterrupt(state, item, message)
  else if (item.kind === 'call' && item.outputSent === undefined && reopen(state, item))
    item.error = { message, code: 'request-refused' }
  else returnUnsettled(state, item, false)
}

/**
 * A refused answer gets no result any more. If the run broke, incomplete arguments will never be completed,
 * and results may never come.
 */
function settleCalls(state: ChatState, broke: boolean): void {
  for (const call of state.open) {
    const { problem, delivery } = call.approval ?? {}
    if (call.state === 'approval-responded' && problem && delivery === 'settled')
      moveCall(state, call, 'cancelled')
    if (!broke) continue
    if (call.state === 'input-complete') {
      if (!call.interrupted) touch(state, call)
      call.interrupted = true
    } else if (call.reader) {
      call.reader = undefined
      call.error = incomplete
      moveCall(state, call, 'cancelled')
    }
  }
}
