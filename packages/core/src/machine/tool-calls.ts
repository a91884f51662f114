import { createJsonReader } from '../json/partial.js'
import { isTerminal, type ToolCallPart, type ToolResultPart } from '../messages.js'
import type { ToolCallStartEvent } from '../protocol/events.js'
import {
  asString,
  getCountersignMetadata,
  isRecord,
  omitUndefined,
  oneOf,
  parseJson,
  readCallMetadata,
  setCountersignMetadata,
  textContent,
} from '../value.js'
import { clearDoubt, doubt, setApproval, withoutProblem } from './approvals.js'
import type { CallDraft } from './data.js'
import { addCall, addDone, findCall, grow, moveCall, takeRepeat, touch } from './drafts.js'
import { effectsOf, type Outcome } from './effects.js'
import type { ToolOutput } from './local-event.js'
import { meant, messageFor } from './message-events.js'
import { mergeOurs } from './owned.js'
import type { ChatState, StepTable } from './state.js'
import { subagentMetadata } from './subagents.js'

/** The steps of a tool call: its arguments, and its result, from the server or from here. */
export const callSteps = {
  TOOL_CALL_START(state, event) {
    const { toolCallId: id, toolCallName: name, metadata } = event
    const before = state.calls.get(id)
    const parent = parentOf(state, event)
    const isSame = before && isSameCall(state, before, parent)
    if (isSame && goesOn(state, before, name)) return undefined
    // One that nobody named has to be the last.
    const owner = messageFor(state, parent ?? id, event, 'assistant', parent === undefined)
    const call = addCall(state, owner, { id, name, metadata: subagentMetadata(state, event) })
    call.reader = createJsonReader()
    describeCall(state, call, metadata)
    return isSame ? doubt(state, before) : undefined
  },
  TOOL_CALL_ARGS(state, { toolCallId, delta, metadata }) {
    const call = state.calls.get(toolCallId)
    if (!call) return 'unknown-id'
    if (call.replay !== undefined) {
      if (!call.arguments.startsWith(delta, call.replay)) return branchOff(state, call, delta)
      call.replay += delta.length
    } else if (!call.reader) return 'illegal-step'
    else {
      if (call.state === 'awaiting-input') moveCall(state, call, 'input-streaming')
      if (metadata) {
        describeCall(state, call, metadata)
        touch(state, call)
      }
      if (delta === '') return undefined
      call.arguments += delta
      call.reader.feed(delta)
      grow(state, call)
    }
    return undefined
  },
  TOOL_CALL_END(state, { toolCallId, metadata }) {
    let call = state.calls.get(toolCallId)
    let outcome: Outcome
    if (!call) return 'unknown-id'
    if (call.replay !== undefined) {
      const isWhole = call.replay === call.arguments.length
      if (isWhole) call.repeats++
      if (isWhole || call.replay === 0) {
        call.replay = undefined
        return undefined
      }
      outcome = branchOff(state, call, '')
      call = state.calls.get(toolCallId) ?? call
    }
    if (!call.reader) return 'illegal-step'
    describeCall(state, call, metadata)
    completeArguments(call)
    moveCall(state, call, 'input-complete')
    return outcome
  },
  TOOL_CALL_RESULT(state, event) {
    const { messageId: id, toolCallId, content, metadata } = event
    // A result answers the nearest call with that id that has none yet.
    const call = findCall(state, toolCallId, ({ answered }) => !answered) ?? takeRepeat(state, toolCallId)
    if (!call) {
      const code = state.calls.has(toolCallId) ? 'illegal-step' : 'unknown-id'
      return [...effectsOf(event, code), { type: 'unhandled', event }]
    }
    if (!settle(state, call, readResult(call, content, metadata), wasApproved(metadata)))
      return 'illegal-step'
    call.answered = true
    addDone(
      state,
      call.owner,
      omitUndefined({ type: 'tool-result', id, toolCallId, content, metadata } as const),
    )
    return undefined
  },
  'tool-started'(state, { toolCallId }) {
    const call = findClientCall(state, toolCallId)
    if (!call || !moveCall(state, call, 'executing')) return 'illegal-step'
    if (call.ready) call.input = call.ready.input
    return undefined
  },
  'tool-output'(state, { toolCallId, messageId, ...result }) {
    const isRunning = (call: CallDraft) => call.state === 'executing'
    const call = findCall(state, toolCallId, isRunning, true) ?? findClientCall(state, toolCallId)
    if (!call) return 'illegal-step'
    if (!moveCall(state, call, 'error' in result ? 'error' : 'complete')) return 'illegal-step'
    if ('error' in result) call.error = result.error
    else call.output = result.output
    answerHere(state, call, messageId, result)
    return undefined
  },
} satisfies Partial<StepTable>

/** Some servers name the message of the person that led to a call; it is not that message's call. */
function parentOf(state: ChatState, { parentMessageId: id }: ToolCallStartEvent): string | undefined {
  const parent = meant(state, id ?? '')
  return parent && parent.role !== 'assistant' ? undefined : id
}

/** What the server says of a call beside its arguments. No answer and no outcome is taken from there. */
function describeCall(
  state: ChatState,
  call: CallDraft,
  metadata: Record<string, unknown> | undefined,
): void {
  if (!metadata) return
  const { token, providerExecuted, kept } = readCallMetadata(metadata)
  call.token = asString(token) ?? call.token
  call.providerExecuted ||= providerExecuted === true
  if (kept) call.metadata = mergeOurs(state, call.metadata, kept)
}

/**
 * Some providers repeat ids, from turn to turn and within one. The same id under another message, or in a later turn, is another call; so
 * is one whose call has ended.
 */
function isSameCall(state: ChatState, call: CallDraft, parentMessageId: string | undefined): boolean {
  const { owner } = call
  const isHere = parentMessageId === undefined || owner === meant(state, parentMessageId)
  return isHere && owner.turn === state.turn && !isTerminal(call.state)
}

/** How often a call that was complete may get more arguments: each time all of them are read again. */
const MOST_REOPENED = 16

/**
 * Whether a call that starts anew is the one with its id that is here. More arguments may follow what is no whole object yet (AG-UI 1.0,
 * tool calls); what the person was asked about may be told again, as long as it says the same.
 */
function goesOn(state: ChatState, call: CallDraft, name: string): boolean {
  if (name !== call.name) return false
  if (call.reader) return true
  if (call.state !== 'input-complete') {
    call.replay = 0
    return true
  }
  if (call.arguments !== '' && isRecord(call.input)) return false
  if (call.reopened >= MOST_REOPENED) return false
  call.reopened++
  moveCall(state, call, 'input-streaming')
  reopen(call)
  return true
}

/** What was streamed again is not the call with its id: it is another one, of which this much was told. */
function branchOff(state: ChatState, before: CallDraft, delta: string): Outcome {
  const { id, name, owner } = before
  const told = before.arguments.slice(0, before.replay) + delta
  before.replay = undefined
  const place = messageFor(state, owner.id, {}, 'assistant', true)
  const call = addCall(state, place, { id, name, arguments: told, state: 'input-streaming' })
  reopen(call)
  return doubt(state, before)
}

/** Arguments go on where they stopped. */
export function reopen(call: CallDraft): void {
  call.reader = createJsonReader()
  call.reader.feed(call.arguments)
}

/** Arguments that are empty mean none; arguments that are not JSON leave no input, only their text. */
function completeArguments(call: CallDraft): void {
  call.reader?.end()
  if (call.arguments === '') call.input = {}
  else call.input = call.reader?.status === 'complete' ? call.reader.value : undefined
  call.reader = undefined
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

/** The call with that id that may run here: of several in one turn the first. */
export function findClientCall(state: ChatState, id: string): CallDraft | undefined {
  const isMeant = (call: CallDraft) => canRunOnClient(call) && !call.interrupted
  return findCall(state, id, isMeant, true) ?? findCall(state, id, canRunOnClient)
}

/** Whether a call may run here: nobody had to be asked, or the server took the answer and handed the call out. */
export function canRunOnClient(call: CallDraft): boolean {
  return call.state === 'input-complete' || (call.state === 'approval-responded' && call.ready !== undefined)
}

/** Gives a call that ended here the result that the server will be sent. */
export function answerHere(state: ChatState, call: CallDraft, id: string, result: ToolOutput): void {
  const { error } = 'error' in result ? result : {}
  const part: ToolResultPart = {
    type: 'tool-result',
    id,
    toolCallId: call.id,
    content:
      'error' in result
        ? JSON.stringify({ type: 'execution-error', reason: result.error.message })
        : toJson(result.output),
    ...(error && {
      error: error.message,
      metadata: { countersign: omitUndefined({ outcome: 'error', code: error.code }) },
    }),
  }
  call.outputSent = false
  call.answered = true
  state.unsent.add(call)
  touch(state, call)
  addDone(state, call.owner, part)
}

/** AG-UI results are text. What has no JSON form is said to have none, so that the model is not left without a result. */
function toJson(output: unknown): string {
  if (typeof output === 'string') return textContent(output)
  try {
    return JSON.stringify(output) ?? 'null'
  } catch {
    return JSON.stringify(isRecord(output) ? '[object without a JSON form]' : String(output))
  }
}

/** `CUSTOM client-tool-ready`: the server took the approval of a client tool and hands the call out to run here. */
export function readyClientTool(state: ChatState, value: unknown): Outcome {
  const { toolCallId, input, decided } = isRecord(value) ? value : {}
  const id = asString(toolCallId) ?? ''
  const isMeant = (call: CallDraft) =>
    call.state === 'approval-responded' && call.approval?.approved === true && !call.ready
  const call = findCall(state, id, isMeant, true)
  if (!call) {
    const latest = state.calls.get(id)
    if (latest?.ready) return undefined
    return latest ? 'illegal-step' : 'unknown-id'
  }
  call.ready = { input }
  call.interrupted = false
  if (decided)
    call.metadata = setCountersignMetadata(call.metadata, {
      ...getCountersignMetadata(call.metadata),
      decided,
    })
  setApproval(state, call, { delivery: 'settled' })
  state.unsent.delete(call)
  return undefined
}
