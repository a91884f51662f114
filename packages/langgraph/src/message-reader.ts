import type { AGUIEvent } from '@countersign/core'
import { callKey, type Shown } from './shown.js'
import type { LangGraphCall, LangGraphCallChunk, LangGraphMessage } from './wire.js'

type AiMessage = Extract<LangGraphMessage, { type: 'ai' }>
type ToolMessage = Extract<LangGraphMessage, { type: 'tool' }>

/** A message of the model while it streams. */
interface OpenMessage {
  readonly id: string
  text: string
  isTextOpen: boolean
  thought: string
  isThoughtOpen: boolean
  /** Its calls by their index. */
  readonly calls: Map<unknown, { readonly id: string; isOpen: boolean }>
}

const dropped =
  'The server dropped this call without running it: if one call of a turn is rejected, it runs none of the others.'

/** Converts a graph's messages to AG-UI events: chunk by chunk while they stream, and the rest once they are complete. */
export function createMessageReader(
  emit: (event: AGUIEvent) => void,
  shown: Shown,
  clientTools: ReadonlySet<string>,
) {
  const open = new Map<string, OpenMessage>()
  const complete = new Set<string>()
  const made = new Map([...shown.open].map(([id, calls]) => [id, [...calls]]))
  const begun = new Set(shown.calls)
  const answered = new Set(shown.answered)
  /** Which message made the last call with an id: providers repeat ids. */
  const makers = new Map(shown.makers)
  const keyOf = (toolCallId: string) => callKey(makers.get(toolCallId), toolCallId)
  let { lastCalls } = shown

  function messageOf(id: string): OpenMessage {
    const found = open.get(id)
    if (found) return found
    const text = shown.texts.get(id) ?? ''
    const message = { id, text, isTextOpen: false, thought: '', isThoughtOpen: false, calls: new Map() }
    open.set(id, message)
    return message
  }

  function addText(message: OpenMessage, delta: string): void {
    if (delta === '') return
    endThought(message)
    const { id: messageId } = message
    if (!message.isTextOpen) emit({ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' })
    message.isTextOpen = true
    message.text += delta
    emit({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta })
  }

  function addThought(message: OpenMessage, delta: string): void {
    if (delta === '') return
    const messageId = `${message.id}-reasoning`
    if (!message.isThoughtOpen) {
      const metadata = { countersign: { messageId: message.id } }
      emit({ type: 'REASONING_START', messageId })
      emit({ type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning', metadata })
    }
    message.isThoughtOpen = true
    message.thought += delta
    emit({ type: 'REASONING_MESSAGE_CONTENT', messageId, delta })
  }

  function endThought(message: OpenMessage): void {
    if (!message.isThoughtOpen) return
    message.isThoughtOpen = false
    const messageId = `${message.id}-reasoning`
    emit({ type: 'REASONING_MESSAGE_END', messageId })
    emit({ type: 'REASONING_END', messageId })
  }

  function beginCall(message: OpenMessage, place: unknown, toolCallId: string, toolCallName: string): void {
    endThought(message)
    message.calls.set(place, { id: toolCallId, isOpen: true })
    makers.set(toolCallId, message.id)
    begun.add(keyOf(toolCallId))
    const calls = made.get(message.id) ?? []
    calls.push(toolCallId)
    made.set(message.id, calls)
    // The client must not wait for it: the server runs it, with the answers to the others.
    const isServers = !clientTools.has(toolCallName)
    const metadata = isServers ? { metadata: { countersign: { providerExecuted: true } } } : {}
    emit({ type: 'TOOL_CALL_START', toolCallId, toolCallName, parentMessageId: message.id, ...metadata })
  }

  function addArguments(toolCallId: string, delta: string): void {
    if (delta !== '') emit({ type: 'TOOL_CALL_ARGS', toolCallId, delta })
  }

  function growCall(message: OpenMessage, { index, id, name, args }: LangGraphCallChunk): void {
    if (id !== undefined && name !== undefined && !begun.has(callKey(message.id, id)))
      beginCall(message, index, id, name)
    const call = message.calls.get(index)
    if (call) addArguments(call.id, args)
  }

  /** Nothing more will be added to the message. */
  function close(message: OpenMessage): void {
    endThought(message)
    if (message.isTextOpen) emit({ type: 'TEXT_MESSAGE_END', messageId: message.id })
    for (const call of message.calls.values())
      if (call.isOpen) emit({ type: 'TOOL_CALL_END', toolCallId: call.id })
    open.delete(message.id)
  }

  function finish({ id, text, thought, calls }: AiMessage): void {
    const message = messageOf(id)
    const isNew = message.thought === '' && !shown.texts.has(id)
    if (isNew) addThought(message, thought)
    if (text.startsWith(message.text)) addText(message, text.slice(message.text.length))
    for (const call of calls) {
      makers.set(call.id, id)
      if (begun.has(keyOf(call.id))) continue
      beginCall(message, call.id, call.id, call.name)
      addArguments(call.id, JSON.stringify(call.args))
    }
    close(message)
    complete.add(id)
  }

  /** If a message arrives again with fewer calls, the missing ones will never run. */
  function dropCalls({ id, calls }: AiMessage): void {
    const kept = new Set(calls.map((call) => call.id))
    for (const toolCallId of made.get(id) ?? [])
      if (!kept.has(toolCallId) && makers.get(toolCallId) === id)
        result(`${toolCallId}-dropped`, toolCallId, JSON.stringify({ reason: dropped }), 'cancelled')
    made.set(id, [...kept])
  }

  function result(
    messageId: string,
    toolCallId: string,
    content: string,
    outcome?: 'error' | 'cancelled',
  ): void {
    const key = keyOf(toolCallId)
    if (answered.has(key) || !begun.has(key)) return
    answered.add(key)
    const metadata = outcome ? { metadata: { countersign: { outcome } } } : {}
    emit({ type: 'TOOL_CALL_RESULT', messageId, toolCallId, role: 'tool', content, ...metadata })
  }

  function settle({ id, toolCallId, text, failed }: ToolMessage, denied: ReadonlySet<string>): void {
    if (failed && !denied.has(toolCallId)) result(id, toolCallId, failureOf(text), 'error')
    else result(id, toolCallId, text)
  }

  return {
    /** The calls of the model's last complete message. */
    get lastCalls(): readonly LangGraphCall[] {
      return lastCalls
    },
    /** Those of them without a result. */
    get openCalls(): readonly string[] {
      return lastCalls.flatMap(({ id }) => (answered.has(keyOf(id)) ? [] : [id]))
    },
    /** Handles a chunk of a model's message, or any other whole message. `denied`: calls that the user denied. */
    grow(message: LangGraphMessage, denied: ReadonlySet<string>): void {
      if (message.type === 'tool') settle(message, denied)
      if (message.type !== 'ai' || complete.has(message.id) || shown.texts.has(message.id)) return
      const growing = messageOf(message.id)
      addThought(growing, message.thought)
      addText(growing, message.text)
      for (const chunk of message.callChunks) growCall(growing, chunk)
    },
    /** Handles a message of the graph's state. */
    take(message: LangGraphMessage, denied: ReadonlySet<string>): void {
      if (message.type === 'tool') settle(message, denied)
      if (message.type !== 'ai') return
      const isKnown = complete.has(message.id) || shown.texts.has(message.id)
      finish(message)
      if (isKnown) dropCalls(message)
      lastCalls = message.calls
    },
    /** Cancels the calls among these without a result, whose interrupts the user left unanswered. Returns their ids. */
    abandon(toolCallIds: readonly string[]): readonly string[] {
      const ids = toolCallIds.filter((id) => !answered.has(keyOf(id)))
      for (const id of ids) result(`${id}-abandoned`, id, '', 'cancelled')
      return ids
    },
    /** The stream has ended: texts and arguments are complete. */
    end(): void {
      for (const message of open.values()) close(message)
    },
  }
}

function failureOf(text: string): string {
  return JSON.stringify({ type: 'execution-error', reason: text })
}
