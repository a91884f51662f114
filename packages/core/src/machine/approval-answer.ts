import type { ToolCallApproval } from '../messages.js'
import { changed, omitUndefined } from '../value.js'
import { callAskedBy, moveCall, setApproval } from './calls.js'
import type { CallDraft } from './data.js'
import { setResponse } from './interrupts.js'
import type { ChatState, StepTable } from './state.js'

/** Steps for the answer to an approval request and its delivery. */
export const approvalSteps = {
  /** The first answer wins: only an open request takes one, or one whose answer had no effect. */
  answer(state, { approvalId, approved, reason, scope, mandate, input, edited }) {
    const found = findAnswerable(state, approvalId)
    if (found.status === 'not-found') return 'unknown-id'
    if (found.status !== 'open') return undefined
    const { call } = found
    reopen(state, call)
    moveCall(state, call, 'approval-responded')
    // Clears the error of an earlier answer.
    call.error = undefined
    const given = {
      approved,
      delivery: 'waiting' as const,
      reason,
      scope: approved ? scope : undefined,
      mandate,
      input: approved ? input : undefined,
      edited: approved ? edited : undefined,
    }
    setApproval(state, call, omitUndefined(given))
    state.unsent.add(call)
    return undefined
  },
  'withdraw-answer'(state, { approvalId }) {
    const call = callAskedBy(state, approvalId)
    if (!call || !canWithdraw(state, call)) return 'illegal-step'
    reopen(state, call)
    return undefined
  },
  'answer-sent': (state, { approvalId }) => moveAnswer(state, approvalId, true),
  'answer-returned': (state, { approvalId }) => moveAnswer(state, approvalId, false),
  close(state, { ids, because }) {
    const problem = because === 'expired' ? ('approval-expired' as const) : undefined
    const closed = new Set<CallDraft>()
    // Backwards, because removing from the front of a long list is slow.
    for (let at = ids.length - 1; at >= 0; at--) {
      const call = callAskedBy(state, ids[at] ?? '')
      if (call?.state === 'approval-requested' && moveCall(state, call, 'cancelled')) closed.add(call)
    }
    for (const id of ids) {
      setResponse(state, state.interrupts.get(id), { cancel: true })
      const call = callAskedBy(state, id)
      if (!call || !closed.has(call)) continue
      setApproval(state, call, omitUndefined({ delivery: 'waiting' as const, problem }))
      state.unsent.add(call)
    }
    return undefined
  },
  respond(state, { interruptId, response }) {
    const draft = state.interrupts.get(interruptId)
    if (!draft) return 'unknown-id'
    setResponse(state, draft, response)
    return undefined
  },
} satisfies Partial<StepTable>

/** A live answer belongs to the open run: if that breaks, it is unknown whether the answer arrived, as for those the request carried. */
function moveAnswer(state: ChatState, approvalId: string, sent: boolean): undefined {
  const item = callAskedBy(state, approvalId) ?? state.interrupts.get(approvalId)
  const isAnswered =
    item?.kind === 'interrupt'
      ? item.response
      : item?.approval?.delivery !== 'settled' &&
        (item?.state === 'approval-responded' ||
          (item?.state === 'cancelled' && item.approval?.approved === undefined))
  if (!item || !isAnswered) return
  const { run } = state
  if (run.phase !== 'idle') {
    const carried = run.carried.filter((other) => other !== item)
    state.run = changed(run, { carried: sent ? [...carried, item] : carried })
  }
  state.unsent[sent ? 'delete' : 'add'](item)
  if (item.kind === 'interrupt') item.sent = sent
  else if (!sent || run.phase === 'idle') setApproval(state, item, { delivery: sent ? 'sent' : 'waiting' })
  else
    setApproval(state, item, {
      delivery: 'sent',
      ...(item.approval?.approved && { sentIn: item.approval.sentIn ?? run.runId }),
    })
}

/** Removes the answer of a call; returns whether the request is open again. */
export function reopen(state: ChatState, call: CallDraft): boolean {
  if (!call.approval || !moveCall(state, call, 'approval-requested')) return false
  const { approved, reason, scope, mandate, input, edited, delivery, sentIn, ...asked } = call.approval
  call.approval = asked
  state.unsent.delete(call)
  return true
}

/** Whether an answer can be withdrawn: no request has carried it, so no server can have it. */
export function canWithdraw(state: ChatState, call: CallDraft): boolean {
  const { approved, delivery, sentIn, problem } = call.approval ?? {}
  const isUnsent = call.state === 'approval-responded' && delivery === 'waiting' && state.unsent.has(call)
  return isUnsent && approved !== undefined && !sentIn && !problem && !call.mayHaveArrived
}

/** Whether an approval request can be answered now. `closed` includes the reason. */
export type Answerable =
  | { readonly status: 'open'; readonly call: CallDraft; readonly approval: ToolCallApproval }
  | { readonly status: 'not-found' | 'already-answered' }
  | { readonly status: 'closed'; readonly reason: string }

export function findAnswerable(state: ChatState, approvalId: string): Answerable {
  const call = state.approvals.get(approvalId)
  const approval = call?.approval
  if (!approval) return { status: 'not-found' }
  if (approval.id !== approvalId) return { status: 'already-answered' }
  // The server failed before using any answer, so the user may still deny the call.
  const isUnused = call.state === 'approval-responded' && state.error?.data.code === 'tool-not-found'
  if (isUnused) return { status: 'open', call, approval }
  if (approval.approved !== undefined) return { status: 'already-answered' }
  const reason = approval.problem ?? call.state
  return reason === 'approval-requested' ? { status: 'open', call, approval } : { status: 'closed', reason }
}

/** The requests a user can see and has not answered: ids of approvals and of interrupts. */
export function visibleRequests(state: ChatState): readonly string[] {
  const ids = state.asked.flatMap((call) => call.approval?.id ?? [])
  for (const [id, interrupt] of state.interrupts) if (!interrupt.response) ids.push(id)
  return ids
}

/** Those of the requests that a user can see which can be answered: a message may have to wait for them. */
export function awaitedRequests(state: ChatState): readonly string[] {
  return visibleRequests(state).filter((id) => findAnswerable(state, id).status !== 'closed')
}
