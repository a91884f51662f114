import { isTerminal, type ToolCallApproval, type ToolCallPart } from '../messages.js'
import type { EventOf } from '../protocol/events.js'
import { asString, getCountersignMetadata, isRecord, omitUndefined, oneOf, parseJson } from '../value.js'
import { isForNow } from './approval-refusal.js'
import { clearDoubt } from './approval-request.js'
import { isAsked } from './asked.js'
import { findCall, isAttached, moveCall, setApproval, takeRepeat, withoutProblem } from './calls.js'
import { touch } from './changes.js'
import type { CallDraft, InterruptDraft } from './data.js'
import { addFixed } from './drafts.js'
import { effectsOf, type Outcome } from './effects.js'
import type { ChatState } from './state.js'

export function takeResult(state: ChatState, event: EventOf<'TOOL_CALL_RESULT'>): Outcome {
  const { messageId: id, toolCallId, content, metadata } = event
  const call = callWithResult(state, toolCallId) ?? takeRepeat(state, toolCallId)
  if (!call) {
    const code = state.calls.has(toolCallId) ? 'illegal-step' : 'unknown-id'
    return [...effectsOf(event, code), { type: 'unhandled', event }]
  }
  if (!settle(state, call, readResult(call, content, metadata), decisionOf(metadata))) return 'illegal-step'
  call.answered = true
  const part = { type: 'tool-result', id, toolCallId, content, metadata } as const
  addFixed(state, call.owner, omitUndefined(part))
  return undefined
}

/**
 * The call that a result belongs to. If ids repeat, this run answers what its request carried, in the order of `resume`; it runs calls that
 * need no approval; and it may answer what it finds in the history. A request without an answer, or with an answer that was not sent, gets
 * a result only if the run carried no answer to another call with that id.
 */
function callWithResult(state: ChatState, id: string): CallDraft | undefined {
  const run = state.run.phase === 'idle' ? undefined : state.run
  const carried = run ? carriedWith(run.carried, id).filter((call) => isAttached(state, call)) : []
  const isSent = ({ answered, approval }: CallDraft) => !answered && approval?.delivery === 'sent'
  const isResumed = (call: CallDraft) =>
    isSent(call) && call.approval?.approved !== undefined && (run?.again || !call.inDoubt)
  const find = (fits: (call: CallDraft) => boolean) =>
    findCall(state, id, (call) => !call.answered && fits(call))
  return (
    carried.find(isResumed) ??
    find(({ approval, interrupted }) => !approval && !interrupted) ??
    carried.find(isSent) ??
    find((call) => !isAsked(call) && !state.unsent.has(call)) ??
    find((call) => carried.every((other) => other === call))
  )
}

/** What runs carried, by id: there may be as many results as calls. */
const carriedById = new WeakMap<object, Map<string, CallDraft[]>>()

function carriedWith(carried: readonly (CallDraft | InterruptDraft)[], id: string): readonly CallDraft[] {
  const calls = carriedById.get(carried) ?? new Map<string, CallDraft[]>()
  if (!carriedById.has(carried))
    for (const item of carried)
      if (item.kind === 'call' && !calls.get(item.id)?.push(item)) calls.set(item.id, [item])
  carriedById.set(carried, calls)
  return calls.get(id) ?? []
}

/** How a call ended, as far as its result tells. */
type Result = Pick<ToolCallPart, 'state' | 'output' | 'error'>

/** Reads the outcome from the flag beside the content, never from the content itself: a tool may return anything. */
export function readResult(
  call: Pick<ToolCallPart, 'approval'> | CallDraft,
  content: string | readonly unknown[],
  metadata: unknown,
  failure?: string,
): Result {
  const own = getCountersignMetadata(metadata)
  const output = typeof content === 'string' ? parseJson(content, content) : content
  const flag = oneOf(
    own.outcome ?? (failure === undefined ? undefined : 'error'),
    'denied',
    'cancelled',
    'error',
  )
  const { approved, problem, delivery } = call.approval ?? {}
  // A no that the server did not take or does not have was not what decided.
  const isDenied =
    approved === false && !problem && delivery !== 'waiting' && decisionOf(metadata) !== 'approve'
  if (!flag) return isDenied ? { state: 'denied' } : { state: 'complete', output }
  const reason = (isRecord(output) && asString(output.reason)) || failure
  const message = reason ?? (flag === 'error' ? 'The tool failed.' : undefined)
  const error = message === undefined ? undefined : omitUndefined({ message, code: asString(own.code) })
  return omitUndefined({ state: flag, error })
}

/** What a result came of, as the server says beside it. */
export function decisionOf(metadata: unknown): string | undefined {
  const { decided } = getCountersignMetadata(metadata)
  return isRecord(decided) ? asString(decided.decision) : undefined
}

/**
 * Ends a call as its result says; one that has ended already only learns that the server knows. But one that was cancelled here, or whose answer
 * seemed to be too late, has run all the same where an approval was first. Says whether that is legal.
 */
export function settle(
  state: ChatState,
  call: CallDraft,
  { state: to, output, error }: Result,
  decision: string | undefined,
): boolean {
  const isApproved = decision === 'approve'
  const isUnsent = call.approval?.delivery === 'waiting' && !call.approval.problem
  const wasFirst = isApproved && call.state === 'cancelled'
  if (wasFirst) call.state = to
  if (wasFirst || moveCall(state, call, to)) {
    touch(state, call)
    call.output = output
    call.error = error
    const { problem } = call.approval ?? {}
    // what was said of the answer before it turned out to be the one that counts
    if (call.approval && (isForNow(problem) || (isApproved && problem === 'approval-expired')))
      call.approval = withoutProblem(call.approval)
  } else if (!isTerminal(call.state)) return false
  call.reader = undefined
  call.replay = undefined
  const approval: Partial<ToolCallApproval> = call.approval ?? {}
  const { approved, delivery } = approval
  if (approved !== undefined || delivery !== undefined) {
    // Why an answer of this page was not the one that counted, unless something has said so before.
    const isOther = isUnsent || decision === (approved ? 'deny' : 'approve')
    const problem = decision === 'expire' ? 'approval-expired' : isOther && 'approval-conflict'
    const isNew = approved !== undefined && problem && !approval.problem
    setApproval(state, call, { delivery: 'settled', ...(isNew && { problem }) })
  }
  state.unsent.delete(call)
  clearDoubt(state, call)
  return true
}
