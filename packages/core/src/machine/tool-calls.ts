import { createJsonReader } from '../json/partial.js'
import { isTerminal, type ToolCallPart, type ToolCallState, type ToolResultPart } from '../messages.js'
import type {
  ToolCallArgsEvent,
  ToolCallEndEvent,
  ToolCallResultEvent,
  ToolCallStartEvent,
} from '../protocol/events.js'
import { markChanged, setApproval } from './approvals.js'
import { addCall, addResult, growPart, moveCall } from './cells.js'
import { type Effect, none, warn } from './effects.js'
import { assistantMessage, subagentMetadata } from './message-events.js'
import type { CallCell, ChatState } from './state.js'
import { isRecord, ours, parseOrText, readCallMetadata, string, withOwn } from './value.js'

export function startCall(state: ChatState, event: ToolCallStartEvent): readonly Effect[] {
  const known = state.calls.get(event.toolCallId)
  const parent = parentOf(state, event)
  if (known && isSameCall(state, known, parent)) return startAgain(state, known, event)
  const owner = assistantMessage(state, parent ?? event.toolCallId, event)
  if (!owner)
    return warn('illegal-step', `The tool call "${event.toolCallId}" names no message of the assistant.`)
  const call = addCall(state, owner, {
    id: event.toolCallId,
    name: event.toolCallName,
    reader: createJsonReader(),
    metadata: subagentMetadata(state, event),
  })
  describeCall(call, event.metadata)
  return none
}

/** Some servers name the message of the person that led to a call; it is not that message's call. */
function parentOf(state: ChatState, { parentMessageId: id }: ToolCallStartEvent): string | undefined {
  const known = id === undefined ? undefined : state.messages.get(id)
  return known && known.role !== 'assistant' ? undefined : id
}

/** What the server says of a call beside its arguments. No answer and no outcome is taken from there. */
function describeCall(call: CallCell, metadata: Record<string, unknown> | undefined): void {
  const { token, providerExecuted, kept } = readCallMetadata(metadata)
  if (typeof token === 'string') call.token = token
  if (providerExecuted === true) call.providerExecuted = true
  if (Object.keys(kept).length === 0) return
  call.metadata = withOwn({ ...call.metadata, ...kept }, { ...ours(call.metadata), ...ours(kept) })
}

/** Some models repeat ids from turn to turn: the same id under another message, or in a later turn, is another call. */
function isSameCall(state: ChatState, known: CallCell, parentMessageId: string | undefined): boolean {
  return parentMessageId === undefined ? known.owner.turn === state.turn : known.owner.id === parentMessageId
}

/** A known call is streamed again: more arguments if it only has those so far, else a repetition that may not differ. */
function startAgain(state: ChatState, call: CallCell, event: ToolCallStartEvent): readonly Effect[] {
  const same = event.toolCallName === call.name
  if (same && (call.state === 'awaiting-input' || call.state === 'input-streaming')) return none
  if (same && call.state === 'input-complete') {
    call.reader = createJsonReader()
    call.reader.feed(call.arguments)
    moveCall(state, call, 'input-streaming')
    return none
  }
  if (!call.reader) call.replay = ''
  if (!same) markChanged(state, call)
  return warn('illegal-step', `The tool call "${call.id}" was started again although it is ${call.state}.`)
}

export function growArguments(state: ChatState, event: ToolCallArgsEvent): readonly Effect[] {
  const call = state.calls.get(event.toolCallId)
  if (!call) return warn('unknown-id', `Arguments came for the unknown tool call "${event.toolCallId}".`)
  if (call.replay !== undefined) {
    call.replay += event.delta
    return none
  }
  if (!call.reader) return warn('illegal-step', `Arguments came for "${call.id}", which is ${call.state}.`)
  if (call.state === 'awaiting-input') moveCall(state, call, 'input-streaming')
  if (event.delta === '') return none
  call.arguments += event.delta
  call.reader.feed(event.delta)
  growPart(state, call.owner, call)
  return none
}

export function endArguments(state: ChatState, event: ToolCallEndEvent): readonly Effect[] {
  const call = state.calls.get(event.toolCallId)
  if (!call) return warn('unknown-id', `The unknown tool call "${event.toolCallId}" ended.`)
  if (call.replay !== undefined) return endReplay(state, call)
  if (!call.reader)
    return warn('illegal-step', `The tool call "${call.id}" ended although it is ${call.state}.`)
  describeCall(call, event.metadata)
  completeArguments(call)
  moveCall(state, call, 'input-complete')
  return none
}

/** Arguments that are empty mean none; arguments that are not JSON leave no input, only their text. */
function completeArguments(call: CallCell): void {
  call.reader?.end()
  if (call.arguments === '') call.input = {}
  else call.input = call.reader?.status === 'complete' ? call.reader.value : undefined
  call.reader = undefined
}

function endReplay(state: ChatState, call: CallCell): readonly Effect[] {
  const differs = call.replay !== '' && call.replay !== call.arguments
  call.replay = undefined
  return differs ? markChanged(state, call) : none
}

export function applyResult(state: ChatState, event: ToolCallResultEvent): readonly Effect[] {
  const call = findUnanswered(state, event.toolCallId)
  if (!call) {
    const known = state.calls.has(event.toolCallId)
    const message = `A result came for the tool call "${event.toolCallId}", which ${known ? 'has one already' : 'is unknown'}.`
    return [...warn(known ? 'illegal-step' : 'unknown-id', message), { type: 'unhandled', event }]
  }
  const outcome = readOutcome(call, event.content, event.metadata)
  if (!settle(state, call, outcome)) {
    return warn('illegal-step', `A result came for "${call.id}", which is ${call.state}.`)
  }
  const part: ToolResultPart = {
    type: 'tool-result',
    id: event.messageId,
    toolCallId: event.toolCallId,
    content: event.content,
    ...(event.metadata && { metadata: event.metadata }),
  }
  addResult(state, call.owner, part, call)
  return none
}

/** A result answers the nearest call with that id that has none yet. */
function findUnanswered(state: ChatState, id: string): CallCell | undefined {
  const latest = state.calls.get(id)
  if (!latest?.answered) return latest
  return [...state.open].filter((call) => call.id === id).at(-1)
}

/** How a call ended, as far as its result tells. */
interface Outcome {
  readonly state: Extract<ToolCallState, 'complete' | 'error' | 'denied' | 'cancelled'>
  readonly output?: unknown
  readonly error?: { readonly message: string; readonly code?: string }
}

/** Reads the outcome from the flag beside the content, never from the content itself: a tool may return anything. */
export function readOutcome(
  call: { readonly approval?: CallCell['approval'] },
  content: string | readonly unknown[],
  metadata: unknown,
  failure?: string,
): Outcome {
  const own = ours(metadata)
  const output = typeof content === 'string' ? parseOrText(content) : content
  const flag = own.outcome ?? (failure === undefined ? undefined : 'error')
  if (flag === 'denied' || flag === 'cancelled' || flag === 'error') {
    const reason = (isRecord(output) && string(output.reason)) || failure
    const code = string(own.code)
    const message = reason ?? (flag === 'error' ? 'The tool failed.' : undefined)
    return {
      state: flag,
      ...(message !== undefined && { error: { message, ...(code !== undefined && { code }) } }),
    }
  }
  return call.approval?.approved === false ? { state: 'denied' } : { state: 'complete', output }
}

/** Ends a call as its result says; one that has ended already only learns that the server knows. Says whether that is legal. */
export function settle(
  state: ChatState,
  call: CallCell,
  outcome: Pick<ToolCallPart, 'state' | 'output' | 'error'>,
): boolean {
  if (moveCall(state, call, outcome.state)) {
    call.output = outcome.output
    call.error = outcome.error
  } else if (!isTerminal(call.state)) return false
  call.reader = undefined
  call.replay = undefined
  const { approved, delivery } = call.approval ?? {}
  if (approved !== undefined || delivery !== undefined) setApproval(state, call, { delivery: 'settled' })
  state.unsent.delete(call)
  return true
}

/** `CUSTOM client-tool-ready`: the server took the approval of a client tool and hands the call out to run here. */
export function readyClientTool(state: ChatState, value: unknown): readonly Effect[] {
  const ready = isRecord(value) ? value : {}
  const id = string(ready.toolCallId)
  const call = id === undefined ? undefined : state.calls.get(id)
  if (!call) return warn('unknown-id', `An unknown client tool call "${id}" is ready.`)
  if (call.ready) return none
  if (call.state !== 'approval-responded' || call.approval?.approved !== true) {
    return warn('illegal-step', `The client tool call "${call.id}" is ready although it is ${call.state}.`)
  }
  call.ready = { input: ready.input }
  setApproval(state, call, { delivery: 'settled' })
  state.unsent.delete(call)
  return none
}
