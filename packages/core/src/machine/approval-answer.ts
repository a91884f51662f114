import type { ToolCallApproval } from '../messages.js'
import { changed, omitUndefined } from '../value.js'
import { moveCall, setApproval } from './calls.js'
import type { CallDraft } from './data.js'
import { setResponse } from './interrupts.js'
import type { ChatState, StepTable } from './state.js'

/** The steps of a question to the person: its answer, and the answer's way. */
export const approvalSteps = {
  /** First answer wins: only an open request takes one, and one whose answer came to nothing. */
  answer(state, { approvalId, approved, reason, scope, input }) {
    const found = findAnswerable(state, approvalId)
    if (found.status === 'not-found') return 'unknown-id'
    if (found.status !== 'open') return undefined
    const { call } = found
    reopen(state, call)
    moveCall(state, call, 'approval-responded')
    // What was wrong with an earlier answer.
    call.error = undefined
    const given = {
      approved,
      delivery: 'waiting' as const,
      reason,
      scope: approved ? scope : undefined,
      input: approved ? input : undefined,
    }
    setApproval(state, call, omitUndefined(given))
    state.unsent.add(call)
    return undefined
  },
  'answer-sent': (state, { approvalId }) => moveAnswer(state, approvalId, true),
  'answer-returned': (state, { approvalId }) => moveAnswer(state, approvalId, false),
  close(state, { ids, because }) {
    const problem = because === 'expired' ? ('approval-expired' as const) : undefined
    const closed = new Set<CallDraft>()
    // From the end, since removing from the front of a long list is slow.
    for (let at = ids.length - 1; at >= 0; at--) {
      const call = state.approvals.get(ids[at] ?? '')
      if (call?.state === 'approval-requested' && moveCall(state, call, 'cancelled')) closed.add(call)
    }
    for (const id of ids) {
      setResponse(state, state.interrupts.get(id), { cancel: true })
      const call = state.approvals.get(id)
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

/** Live answers go with the run that is open: if it breaks, their fate is as unknown as that of the answers it began with. */
function moveAnswer(state: ChatState, approvalId: string, sent: boolean): undefined {
  const item = state.approvals.get(approvalId) ?? state.interrupts.get(approvalId)
  const isAnswered =
    item?.kind === 'interrupt'
      ? item.response
      : item?.state === 'approval-responded' && item.approval?.delivery !== 'settled'
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

/** Takes the answer of a call back; says whether there was one. */
export function reopen(state: ChatState, call: CallDraft): boolean {
  if (!call.approval || !moveCall(state, call, 'approval-requested')) return false
  const { approved, reason, scope, input, delivery, sentIn, ...asked } = call.approval
  call.approval = asked
  state.unsent.delete(call)
  return true
}

/** Whether an answer may be given now, and if not, why. A closed request tells its reason. */
export type Answerable =
  | { readonly status: 'open'; readonly call: CallDraft; readonly approval: ToolCallApproval }
  | { readonly status: 'not-found' | 'already-answered' }
  | { readonly status: 'closed'; readonly reason: string }

export function findAnswerable(state: ChatState, approvalId: string): Answerable {
  const call = state.approvals.get(approvalId)
  const approval = call?.approval
  if (!approval) return { status: 'not-found' }
  // the server threw before it used any answer: to say no is a way out
  const isUnused = call.state === 'approval-responded' && state.error?.data.code === 'tool-not-found'
  if (isUnused) return { status: 'open', call, approval }
  if (approval.approved !== undefined) return { status: 'already-answered' }
  const reason = approval.problem ?? call.state
  return reason === 'approval-requested' ? { status: 'open', call, approval } : { status: 'closed', reason }
}
