import { createJsonReader } from '../json/partial.js'
import { isTerminal } from '../messages.js'
import type { ToolCallStartEvent } from '../protocol/events.js'
import { asString, isRecord, readCallMetadata } from '../value.js'
import { doubt } from './approval-request.js'
import { addCall, moveCall } from './calls.js'
import { grow, touch } from './changes.js'
import type { CallDraft } from './data.js'
import type { Outcome } from './effects.js'
import { meant, messageFor } from './message-events.js'
import { mergeMetadata } from './owned.js'
import type { ChatState, StepTable } from './state.js'
import { subagentMetadata } from './subagents.js'

export const argumentSteps = {
  TOOL_CALL_START(state, event) {
    const { toolCallId: id, toolCallName: name, metadata } = event
    const before = state.calls.get(id)
    const parent = parentOf(state, event)
    const isSame = before && isSameCall(state, before, parent)
    if (isSame && goesOn(state, before, name)) return undefined
    // Without a parent message, the call goes into the last message.
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
    const { arguments: whole } = readCallMetadata(metadata)
    // What will run is not what was streamed: it is shown before anybody is asked about it.
    if (typeof whole === 'string') {
      call.arguments = whole
      reopen(call)
    }
    completeArguments(call)
    moveCall(state, call, 'input-complete')
    return outcome
  },
} satisfies Partial<StepTable>

/** Some servers name the user's message that led to the call as its parent; the call does not belong to it. */
function parentOf(state: ChatState, { parentMessageId: id }: ToolCallStartEvent): string | undefined {
  const parent = meant(state, id ?? '')
  return parent && parent.role !== 'assistant' ? undefined : id
}

/** What the server sends about a call besides its arguments. No answer and no outcome is read from it. */
function describeCall(
  state: ChatState,
  call: CallDraft,
  metadata: Record<string, unknown> | undefined,
): void {
  if (!metadata) return
  const { token, providerExecuted, kept } = readCallMetadata(metadata)
  call.token = asString(token) ?? call.token
  call.providerExecuted ||= providerExecuted === true
  if (kept) call.metadata = mergeMetadata(state, call.metadata, kept)
}

/**
 * Some providers repeat ids, across turns and within one. The same id in another message or in a later turn
 * is another call; so is one whose earlier call has ended.
 */
function isSameCall(state: ChatState, call: CallDraft, parentMessageId: string | undefined): boolean {
  const { owner } = call
  const isHere = parentMessageId === undefined || owner === meant(state, parentMessageId)
  return isHere && owner.turn === state.turn && !isTerminal(call.state)
}

/** How often a complete call may be reopened for more arguments. Each time, all of them are parsed again. */
const MOST_REOPENED = 16

/**
 * Whether a start event continues the call with its id. More arguments may follow as long as they are not a whole object
 * (AG-UI 1.0, tool calls). A call that already had its approval request may be streamed again, as long as it is unchanged.
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

/** A call that was streamed again turned out to differ: it is another call, with the arguments streamed so far. */
function branchOff(state: ChatState, before: CallDraft, delta: string): Outcome {
  const { id, name, owner } = before
  const told = before.arguments.slice(0, before.replay) + delta
  before.replay = undefined
  const place = messageFor(state, owner.id, {}, 'assistant', true)
  const call = addCall(state, place, { id, name, arguments: told, state: 'input-streaming' })
  reopen(call)
  return doubt(state, before)
}

/** Resumes parsing the arguments where it stopped. */
export function reopen(call: CallDraft): void {
  call.reader = createJsonReader()
  call.reader.feed(call.arguments)
}

/** Empty arguments mean none; arguments that are not JSON leave no input, only their text. */
function completeArguments(call: CallDraft): void {
  call.reader?.end()
  if (call.arguments === '') call.input = {}
  else call.input = call.reader?.status === 'complete' ? call.reader.value : undefined
  call.reader = undefined
}
