import { isTerminal, type ToolCallApproval, type ToolCallPart } from '../messages.js'
import type { EventOf } from '../protocol/events.js'
import { asString, getCountersignMetadata, isRecord, omitUndefined, oneOf, parseJson } from '../value.js'
import { isForNow } from './approval-refusal.js'
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
  if (!settle(state, call, readResult(call, content, metadata), decisionOf(metadata))) return 'illegal-step'
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
  const isDenied = approved === false && !problem && decisionOf(metadata) !== 'approve'
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

/** Why an answer of this page was not the one that counted, where nothing has said so yet. */
function problemOf({ approved, problem }: Partial<ToolCallApproval>, decision: string | undefined) {
  if (approved === undefined || problem) return {}
  if (decision === 'expire') return { problem: 'approval-expired' as const }
  return decision === (approved ? 'deny' : 'approve') ? { problem: 'approval-conflict' as const } : {}
}

/**
 * Ends a call as its result says; one that has ended already only learns that the server knows. But one that was cancelled here, or whose answer
 * seemed to be too late, has run all the same where a yes was first. Says whether that is legal.
 */
export function settle(
  state: ChatState,
  call: CallDraft,
  { state: to, output, error }: Result,
  decision: string | undefined,
): boolean {
  const isApproved = decision === 'approve'
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
  if (approval.approved !== undefined || approval.delivery !== undefined) {
    setApproval(state, call, { delivery: 'settled', ...problemOf(approval, decision) })
  }
  state.unsent.delete(call)
  clearDoubt(state, call)
  return true
}
