import { createJsonReader } from '../json/partial.js'
import { isTerminal, type ToolCallPart, type ToolResultPart } from '../messages.js'
import type { ToolCallStartEvent } from '../protocol/events.js'
import {
  isRecord,
  known,
  oneOf,
  ours,
  parseJson,
  readCallMetadata,
  string,
  textContent,
  withOwn,
} from '../value.js'
import type { ToolOutput } from './acts.js'
import { markChanged, setApproval } from './approvals.js'
import { addCall, addDone, grow, moveCall, touch } from './cells.js'
import { effectsOf, type Outcome, type StepTable } from './effects.js'
import { assistantMessage } from './message-events.js'
import type { CallCell, ChatState } from './state.js'
import { subagentMetadata } from './subagents.js'

/** The steps of a tool call: its arguments, and its result, from the server or from here. */
export const callSteps = {
  TOOL_CALL_START(state, event) {
    const { toolCallId: id, toolCallName: name, metadata } = event
    const before = state.calls.get(id)
    const parent = parentOf(state, event)
    if (before && isSameCall(state, before, parent)) return startAgain(state, before, name)
    const owner = assistantMessage(state, parent ?? id, event)
    if (!owner) return 'illegal-step'
    const call = addCall(state, owner, { id, name, metadata: subagentMetadata(state, event) })
    call.reader = createJsonReader()
    describeCall(call, metadata)
    return undefined
  },
  TOOL_CALL_ARGS(state, { toolCallId, delta, metadata }) {
    const call = state.calls.get(toolCallId)
    if (!call) return 'unknown-id'
    if (call.replay !== undefined) call.replay += delta
    else if (!call.reader) return 'illegal-step'
    else {
      if (call.state === 'awaiting-input') moveCall(state, call, 'input-streaming')
      if (metadata) {
        describeCall(call, metadata)
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
    const call = state.calls.get(toolCallId)
    if (!call) return 'unknown-id'
    const { replay } = call
    if (replay !== undefined) {
      call.replay = undefined
      return replay === '' || replay === call.arguments ? undefined : markChanged(state, call)
    }
    if (!call.reader) return 'illegal-step'
    describeCall(call, metadata)
    completeArguments(call)
    moveCall(state, call, 'input-complete')
    return undefined
  },
  TOOL_CALL_RESULT(state, event) {
    const { messageId: id, toolCallId, content, metadata } = event
    const call = findUnanswered(state, toolCallId)
    if (!call) {
      const code = state.calls.has(toolCallId) ? 'illegal-step' : 'unknown-id'
      return [...effectsOf(event, code), { type: 'unhandled', event }]
    }
    if (!settle(state, call, readResult(call, content, metadata))) return 'illegal-step'
    call.answered = true
    addDone(state, call.owner, known({ type: 'tool-result', id, toolCallId, content, metadata } as const))
    return undefined
  },
  'tool-started'(state, { toolCallId }) {
    const call = state.calls.get(toolCallId)
    if (!call || !isLeftHere(call) || !moveCall(state, call, 'executing')) return 'illegal-step'
    if (call.ready) call.input = call.ready.input
    return undefined
  },
  'tool-output'(state, { toolCallId, messageId, ...result }) {
    const call = state.calls.get(toolCallId)
    if (!call || !(call.state === 'executing' || isLeftHere(call))) return 'illegal-step'
    if (!moveCall(state, call, 'error' in result ? 'error' : 'complete')) return 'illegal-step'
    if ('error' in result) call.error = result.error
    else call.output = result.output
    answerHere(state, call, messageId, result)
    return undefined
  },
} satisfies Partial<StepTable>

/** Some servers name the message of the person that led to a call; it is not that message's call. */
function parentOf(state: ChatState, { parentMessageId: id }: ToolCallStartEvent): string | undefined {
  const parent = state.messages.get(id ?? '')
  return parent && parent.role !== 'assistant' ? undefined : id
}

/** What the server says of a call beside its arguments. No answer and no outcome is taken from there. */
function describeCall(call: CallCell, metadata: Record<string, unknown> | undefined): void {
  if (!metadata) return
  const { token, providerExecuted, kept } = readCallMetadata(metadata)
  call.token = string(token) ?? call.token
  call.providerExecuted ||= providerExecuted === true
  call.metadata = withOwn({ ...call.metadata, ...kept }, { ...ours(call.metadata), ...ours(kept) })
}

/** Some models repeat ids from turn to turn: the same id under another message, or in a later turn, is another call. */
function isSameCall(state: ChatState, { owner }: CallCell, parentMessageId: string | undefined): boolean {
  return parentMessageId === undefined ? owner.turn === state.turn : owner.id === parentMessageId
}

/** A known call is streamed again: more arguments if it only has those so far, else a repetition that may not differ. */
function startAgain(state: ChatState, call: CallCell, name: string): Outcome {
  const same = name === call.name
  if (same && call.reader) return undefined
  if (same && moveCall(state, call, 'input-streaming')) {
    reopen(call)
    return undefined
  }
  if (!call.reader) call.replay = ''
  if (!same) markChanged(state, call)
  return 'illegal-step'
}

/** Arguments go on where they stopped. */
export function reopen(call: CallCell): void {
  call.reader = createJsonReader()
  call.reader.feed(call.arguments)
}

/** Arguments that are empty mean none; arguments that are not JSON leave no input, only their text. */
function completeArguments(call: CallCell): void {
  call.reader?.end()
  if (call.arguments === '') call.input = {}
  else call.input = call.reader?.status === 'complete' ? call.reader.value : undefined
  call.reader = undefined
}

/** A result answers the nearest call with that id that has none yet. */
function findUnanswered(state: ChatState, id: string): CallCell | undefined {
  const latest = state.calls.get(id)
  return latest?.answered ? [...state.open].findLast((call) => call.id === id) : latest
}

/** How a call ended, as far as its result tells. */
type Result = Pick<ToolCallPart, 'state' | 'output' | 'error'>

/** Reads the outcome from the flag beside the content, never from the content itself: a tool may return anything. */
export function readResult(
  call: Pick<ToolCallPart, 'approval'> | CallCell,
  content: string | readonly unknown[],
  metadata: unknown,
  failure?: string,
): Result {
  const own = ours(metadata)
  const output = typeof content === 'string' ? parseJson(content, content) : content
  const flag = oneOf(
    own.outcome ?? (failure === undefined ? undefined : 'error'),
    'denied',
    'cancelled',
    'error',
  )
  if (!flag) return call.approval?.approved === false ? { state: 'denied' } : { state: 'complete', output }
  const reason = (isRecord(output) && string(output.reason)) || failure
  const message = reason ?? (flag === 'error' ? 'The tool failed.' : undefined)
  const error = message === undefined ? undefined : known({ message, code: string(own.code) })
  return known({ state: flag, error })
}

/** Ends a call as its result says; one that has ended already only learns that the server knows. Says whether that is legal. */
export function settle(state: ChatState, call: CallCell, { state: to, output, error }: Result): boolean {
  if (moveCall(state, call, to)) {
    call.output = output
    call.error = error
  } else if (!isTerminal(call.state)) return false
  call.reader = undefined
  call.replay = undefined
  const { approved, delivery } = call.approval ?? {}
  if (approved !== undefined || delivery !== undefined) setApproval(state, call, { delivery: 'settled' })
  state.unsent.delete(call)
  return true
}

/** Whether a call may run here: nobody had to be asked, or the server took the answer and handed the call out. */
export function isLeftHere(call: CallCell): boolean {
  return call.state === 'input-complete' || (call.state === 'approval-responded' && call.ready !== undefined)
}

/** Gives a call that ended here the result that the server will be sent. */
export function answerHere(state: ChatState, call: CallCell, id: string, result: ToolOutput): void {
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
      metadata: { countersign: known({ outcome: 'error', code: error.code }) },
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
  const call = state.calls.get(string(toolCallId) ?? '')
  if (!call) return 'unknown-id'
  if (call.ready) return undefined
  if (call.state !== 'approval-responded' || !call.approval?.approved) return 'illegal-step'
  call.ready = { input }
  if (decided) call.metadata = withOwn(call.metadata, { ...ours(call.metadata), decided })
  setApproval(state, call, { delivery: 'settled' })
  state.unsent.delete(call)
  return undefined
}
