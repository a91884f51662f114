import { createJsonReader } from '../json/partial.js'
import { isTerminal, type ToolCallState } from '../messages.js'
import type {
  ToolCallArgsEvent,
  ToolCallEndEvent,
  ToolCallResultEvent,
  ToolCallStartEvent,
} from '../protocol/events.js'
import { markChanged } from './approvals.js'
import { addCall, addFixed, growPart, moveCall, touchPart } from './cells.js'
import { type Effect, none, warn } from './effects.js'
import { assistantMessage, subagentMetadata } from './message-events.js'
import type { CallCell, ChatState } from './state.js'
import { isRecord, mergeMetadata, ours, parseOrText, string } from './value.js'

export function startCall(state: ChatState, event: ToolCallStartEvent): readonly Effect[] {
  const known = state.calls.get(event.toolCallId)
  if (known && isSameCall(state, known, event.parentMessageId)) return startAgain(state, known, event)
  const owner = assistantMessage(state, event.parentMessageId ?? event.toolCallId, event)
  addCall(state, owner, {
    id: event.toolCallId,
    name: event.toolCallName,
    reader: createJsonReader(),
    metadata: mergeMetadata(subagentMetadata(state, event), event.metadata),
  })
  return none
}

/** Some models repeat ids from turn to turn: the same id under another message, or in a later turn, is another call. */
function isSameCall(state: ChatState, known: CallCell, parentMessageId: string | undefined): boolean {
  return parentMessageId === undefined ? known.owner.turn === state.turn : known.owner.id === parentMessageId
}

/** A known call is streamed again: more arguments if it only has those so far, else a repetition that may not differ. */
function startAgain(state: ChatState, call: CallCell, event: ToolCallStartEvent): readonly Effect[] {
  if (call.state === 'awaiting-input' || call.state === 'input-streaming') return none
  if (call.state === 'input-complete') {
    call.reader = createJsonReader()
    call.reader.feed(call.arguments)
    moveCall(state, call, 'input-streaming')
    return none
  }
  call.replay = ''
  if (event.toolCallName !== call.name) markChanged(state, call)
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
  const { countersign: own, ...metadata } = event.metadata ?? {}
  call.token = string(ours({ countersign: own })['token'])
  if (Object.keys(metadata).length > 0) call.metadata = mergeMetadata(call.metadata, metadata)
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
  const call = findOpenCall(state, event.toolCallId)
  if (!call) {
    const known = state.calls.has(event.toolCallId)
    const message = `A result came for the tool call "${event.toolCallId}", which ${known ? 'has one already' : 'is unknown'}.`
    return [...warn(known ? 'illegal-step' : 'unknown-id', message), { type: 'unhandled', event }]
  }
  const outcome = readOutcome(call, event.content, event.metadata)
  if (!moveCall(state, call, outcome.state)) {
    return warn('illegal-step', `A result came for "${call.id}", which is ${call.state}.`)
  }
  settle(state, call, outcome)
  addFixed(state, call.owner, {
    type: 'tool-result',
    id: event.messageId,
    toolCallId: event.toolCallId,
    content: event.content,
    ...(event.metadata && { metadata: event.metadata }),
  })
  return none
}

/** A result answers the nearest call with that id that has none yet. */
function findOpenCall(state: ChatState, id: string): CallCell | undefined {
  const latest = state.calls.get(id)
  if (!latest || !isTerminal(latest.state)) return latest
  return [...state.open].filter((call) => call.id === id).at(-1)
}

/** How a call ended, as far as its result tells. */
export interface Outcome {
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
  const flag = own['outcome'] ?? (failure === undefined ? undefined : 'error')
  if (flag === 'denied' || flag === 'cancelled' || flag === 'error') {
    const reason = (isRecord(output) && string(output['reason'])) || failure
    const code = string(own['code'])
    const message = reason ?? (flag === 'error' ? 'The tool failed.' : undefined)
    return {
      state: flag,
      ...(message !== undefined && { error: { message, ...(code !== undefined && { code }) } }),
    }
  }
  return call.approval?.approved === false ? { state: 'denied' } : { state: 'complete', output }
}

function settle(state: ChatState, call: CallCell, outcome: Outcome): void {
  call.reader = undefined
  call.output = outcome.output
  call.error = outcome.error
  if (call.approval?.approved !== undefined) call.approval = { ...call.approval, delivery: 'settled' }
  state.unsent.delete(call)
  touchPart(state, call.owner, call)
}

/** `CUSTOM client-tool-ready`: the server took the approval of a client tool and hands the call out to run here. */
export function readyClientTool(state: ChatState, value: unknown): readonly Effect[] {
  const ready = isRecord(value) ? value : {}
  const call = state.calls.get(String(ready['toolCallId']))
  if (!call)
    return warn('unknown-id', `An unknown client tool call "${String(ready['toolCallId'])}" is ready.`)
  if (call.state !== 'approval-responded' || call.approval?.approved !== true) {
    return warn('illegal-step', `The client tool call "${call.id}" is ready although it is ${call.state}.`)
  }
  call.ready = { input: ready['input'] }
  call.approval = { ...call.approval, delivery: 'settled' }
  state.unsent.delete(call)
  touchPart(state, call.owner, call)
  return none
}
