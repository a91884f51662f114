import { isTerminal, type ToolCallPart } from '../messages.js'
import type { EventOf } from '../protocol/events.js'
import { asString, getCountersignMetadata, isRecord, omitUndefined, oneOf, parseJson } from '../value.js'
import { clearDoubt } from './approval-request.js'
import { findCall, moveCall, setApproval, takeRepeat, withoutProblem } from './calls.js'
import { touch } from './changes.js'
import type { CallDraft } from './data.js'
import { addDone } from './drafts.js'
import { effectsOf, type Outcome } from './effects.js'
import type { ChatState } from './state.js'

/** The result of a call, from the server. */
export function takeResult(state: ChatState, event: EventOf<'TOOL_CALL_RESULT'>): Outcome {
  const { messageId: id, toolCallId, content, metadata } = event
  // A result answers the nearest call with that id that has none yet.
  const call = findCall(state, toolCallId, ({ answered }) => !answered) ?? takeRepeat(state, toolCallId)
  if (!call) {
    const code = state.calls.has(toolCallId) ? 'illegal-step' : 'unknown-id'
    return [...effectsOf(event, code), { type: 'unhandled', event }]
  }
  if (!settle(state, call, readResult(call, content, metadata), wasApproved(metadata))) return 'illegal-step'
  call.answered = true
  addDone(
    state,
    call.owner,
    omitUndefined({ type: 'tool-result', id, toolCallId, content, metadata } as const),
  )
  return undefined
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
  const { approved, problem } = call.approval ?? {}
  // A no that the server did not take was not what decided.
  if (!flag) return approved === false && !problem ? { state: 'denied' } : { state: 'complete', output }
  const reason = (isRecord(output) && asString(output.reason)) || failure
  const message = reason ?? (flag === 'error' ? 'The tool failed.' : undefined)
  const error = message === undefined ? undefined : omitUndefined({ message, code: asString(own.code) })
  return omitUndefined({ state: flag, error })
}

/** Whether a result came of a yes, as the server says beside it. */
export function wasApproved(metadata: unknown): boolean {
  const { decided } = getCountersignMetadata(metadata)
  return isRecord(decided) && decided.decision === 'approve'
}

/**
 * Ends a call as its result says; one that has ended already only learns that the server knows. But one that was cancelled here, or whose answer
 * seemed to be too late, has run all the same where a yes was first. Says whether that is legal.
 */
export function settle(
  state: ChatState,
  call: CallDraft,
  { state: to, output, error }: Result,
  isApproved: boolean,
): boolean {
  const wasFirst = isApproved && call.state === 'cancelled'
  if (wasFirst) call.state = to
  if (wasFirst || moveCall(state, call, to)) {
    touch(state, call)
    call.output = output
    call.error = error
    if (isApproved && call.approval?.problem === 'approval-expired')
      call.approval = withoutProblem(call.approval)
  } else if (!isTerminal(call.state)) return false
  call.reader = undefined
  call.replay = undefined
  const { approved, delivery } = call.approval ?? {}
  if (approved !== undefined || delivery !== undefined) setApproval(state, call, { delivery: 'settled' })
  state.unsent.delete(call)
  clearDoubt(state, call)
  return true
}
