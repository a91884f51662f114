import { isTerminal } from '../messages.js'
import type { ResumeEntry } from '../protocol/events.js'
import type { CallCell, ChatState, InterruptCell } from './state.js'

/** What is being waited for, or what there is to send. Derived from the state each time; nothing keeps it. */

/** Whether a person's answer, a client tool's output or an interrupt's answer has not been sent yet and may go by itself. */
export function hasUnsentAnswer(state: ChatState): boolean {
  for (const item of state.unsent) {
    if (item.kind === 'interrupt') {
      if (item.sent) continue
      return true
    }
    if (item.owner.turn !== state.turn) continue
    if (item.outputSent === false) return true
    const { approval } = item
    if (approval?.approved !== undefined && approval.delivery === 'waiting' && !approval.problem) return true
  }
  return false
}

/** Whether the server refused an answer for now (its ledger was out of reach), so that it can be offered again. */
export function hasDeferredAnswer(state: ChatState): boolean {
  return [...state.unsent].some(
    (item) => item.kind === 'call' && item.approval?.problem === 'ledger-unavailable',
  )
}

/** Whether every call of the present turn is answered or finished, and every open interrupt is answered. */
export function areAllToolsComplete(state: ChatState): boolean {
  for (const call of state.open) if (call.owner.turn === state.turn && blocks(call)) return false
  for (const interrupt of state.interrupts.values()) if (!interrupt.response) return false
  return true
}

function blocks(call: CallCell): boolean {
  switch (call.state) {
    case 'awaiting-input':
    case 'input-streaming':
    case 'approval-requested':
    case 'executing':
      return true
    case 'input-complete':
      return !(call.providerExecuted || call.interrupted)
    case 'approval-responded':
      return call.ready !== undefined
    case 'complete':
    case 'error':
    case 'denied':
    case 'cancelled':
      return false
    default:
      return call.state satisfies never
  }
}

/**
 * Calls that are left to this client: those the server handed out, and those the finished run named or, where it named none, those it
 * left without a result.
 */
export function clientCalls(state: ChatState): readonly { id: string; name: string; input: unknown }[] {
  const finished = state.run.phase === 'idle' ? state.run.last : state.run.finish
  if (finished?.outcome === 'cancelled') return []
  const named = finished?.pendingToolCallIds && new Set(finished.pendingToolCallIds)
  const calls: { id: string; name: string; input: unknown }[] = []
  for (const call of state.open) {
    if (call.owner.turn !== state.turn || call.interrupted || call.providerExecuted) continue
    if (call.ready && call.state === 'approval-responded')
      calls.push({ id: call.id, name: call.name, input: call.ready.input })
    else if (finished && call.state === 'input-complete' && (named?.has(call.id) ?? true)) {
      calls.push({ id: call.id, name: call.name, input: call.input })
    }
  }
  return calls
}

/**
 * The answers that go out with the next request. Those whose fate is unknown only where the person asked for it (`again`): else they
 * ride in the history, where the server finds them too.
 */
export function resumeEntries(state: ChatState, again: boolean): ResumeEntry[] {
  return [...state.unsent].flatMap((item) =>
    item.kind === 'interrupt' ? interruptEntry(item, again) : approvalEntry(item, again),
  )
}

function interruptEntry({ interrupt, response, sent }: InterruptCell, again: boolean): ResumeEntry[] {
  if (!response || (sent && !again)) return []
  return [
    'cancel' in response
      ? { interruptId: interrupt.id, status: 'cancelled' }
      : { interruptId: interrupt.id, status: 'resolved', payload: response.payload },
  ]
}

function approvalEntry({ approval, state }: CallCell, again: boolean): ResumeEntry[] {
  if (!approval || (approval.delivery === 'unknown' && !again)) return []
  if (approval.delivery !== 'waiting' && approval.delivery !== 'unknown') return []
  const metadata =
    approval.token === undefined ? {} : { metadata: { countersign: { token: approval.token } } }
  if (approval.approved === undefined) {
    return state === 'cancelled' ? [{ interruptId: approval.id, status: 'cancelled', ...metadata }] : []
  }
  if (isTerminal(state)) return []
  const { approved, reason, scope, input } = approval
  const payload = {
    approved,
    ...(reason !== undefined && { reason }),
    ...(input !== undefined && { editedArgs: input }),
    ...(scope !== undefined && { scope }),
  }
  return [{ interruptId: approval.id, status: 'resolved', payload, ...metadata }]
}

/** Client tools at work. */
export function executingCalls(state: ChatState): readonly CallCell[] {
  return [...state.open].filter((call) => call.state === 'executing')
}

/** The requests a person can see and has not answered: ids of approvals and of interrupts. */
export function visibleRequests(state: ChatState): readonly string[] {
  const ids: string[] = []
  for (const call of state.open)
    if (call.state === 'approval-requested' && call.approval) ids.push(call.approval.id)
  for (const [id, interrupt] of state.interrupts) if (!interrupt.response) ids.push(id)
  return ids
}
