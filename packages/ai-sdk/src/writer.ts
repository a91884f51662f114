import {
  type AGUIEvent,
  asString,
  type EventOf,
  getCountersignMetadata,
  type Interrupt,
  isRecord,
  omitUndefined,
  parseJson,
} from '@countersign/core'
import { type AiSdkChunk, executed, finishReason, provider, type Said } from './chunk.js'
import { type AiSdkMessage, isToolPart, stepsOf } from './message.js'

export interface AiSdkWriterOptions {
  /** The id of the assistant message that the stream builds; that of `continued` if it continues one. */
  readonly messageId: string
  /** The assistant message that the stream continues. */
  readonly continued?: AiSdkMessage | undefined
  /** The AG-UI message whose step that message ends with, if the stream goes on with it. */
  readonly step?: string | undefined
}

/** A call whose arguments are streaming. */
interface OpenCall {
  readonly name: string
  readonly providerExecuted: boolean
  arguments: string
  encryptedValue?: string
}

/** Converts AG-UI events to chunks of an AI SDK stream. */
export type AiSdkWriter = (event: AGUIEvent) => readonly AiSdkChunk[]

/** Tool names with this prefix belong to the protocol; neither users nor models should see these calls. */
const RESERVED = 'client.'

/**
 * Converts the events of one run for AI SDK clients: each AG-UI message becomes a step of one assistant message. Whatever
 * such a client cannot represent is left out. So are results for calls that are not in the message: they would make it fail.
 */
export function createAiSdkWriter({ messageId, continued, step }: AiSdkWriterOptions): AiSdkWriter {
  let out: AiSdkChunk[] = []
  let texts = 0
  let thought: { readonly id: string; own: Record<string, unknown> } | undefined
  const open = new Map<string, OpenCall>()
  const known = (continued?.parts ?? []).filter(isToolPart)
  // An approval is not asked for a call that the page shows without its arguments.
  const shown = new Set(known.flatMap((part) => (part.state === 'input-streaming' ? [] : part.toolCallId)))
  const asked = new Set<string>()
  /** Calls that were asked for, and have no result. */
  const waiting = new Set<string>()
  const requests = new Map(known.map(({ toolCallId, approval }) => [toolCallId, approval?.id]))
  /** Denied calls of the last step. */
  let denied =
    (continued ? stepsOf(continued) : [])
      .at(-1)
      ?.flatMap((part) => (isToolPart(part) && part.state === 'output-denied' ? part.toolCallId : [])) ?? []
  /** Whether the last step has calls. */
  let hasCalls = known.length > 0
  const emit = (chunk: AiSdkChunk) => {
    out.push(chunk)
  }

  function enter(id: string): void {
    if (step === id) return
    if (step !== undefined) emit({ type: 'finish-step' })
    emit({ type: 'start-step' })
    step = id
    hasCalls = false
    denied = []
  }

  /** Deferred: opaque provider content follows the end of reasoning, but the SDK accepts nothing for a part that has ended. */
  function endThought(): void {
    if (!thought) return
    emit({ type: 'reasoning-end', id: thought.id, ...provider(thought.own) })
    thought = undefined
  }

  function writeThought(event: Thought): void {
    const { messageId: id, metadata } = event
    switch (event.type) {
      case 'REASONING_MESSAGE_START':
        enter(asString(getCountersignMetadata(metadata).messageId) ?? id)
        emit({ type: 'reasoning-start', id })
        break
      case 'REASONING_MESSAGE_CONTENT':
        emit({ type: 'reasoning-delta', id, delta: event.delta })
        break
      case 'REASONING_MESSAGE_END': {
        const { messageId: _, ...own } = getCountersignMetadata(metadata)
        thought = { id, own }
        break
      }
      default:
        event satisfies never
    }
  }

  function writeText(event: TextEvent): void {
    if (event.type === 'TEXT_MESSAGE_START') {
      enter(event.messageId)
      texts++
    }
    const id = `${event.messageId}/${texts}`
    switch (event.type) {
      case 'TEXT_MESSAGE_START':
        emit({ type: 'text-start', id })
        break
      case 'TEXT_MESSAGE_CONTENT':
        if (event.delta !== '') emit({ type: 'text-delta', id, delta: event.delta })
        break
      case 'TEXT_MESSAGE_END':
        emit({ type: 'text-end', id, ...provider(getCountersignMetadata(event.metadata)) })
        break
      default:
        event satisfies never
    }
  }

  function startCall({
    toolCallId,
    toolCallName: name,
    parentMessageId,
    metadata,
  }: EventOf<'TOOL_CALL_START'>): void {
    if (name.startsWith(RESERVED)) return
    enter(parentMessageId ?? step ?? toolCallId)
    const providerExecuted = getCountersignMetadata(metadata).providerExecuted === true
    open.set(toolCallId, { name, providerExecuted, arguments: '' })
    shown.add(toolCallId)
    hasCalls = true
    emit({ type: 'tool-input-start', toolCallId, toolName: name, ...executed(providerExecuted) })
  }

  function endCall({ toolCallId, metadata }: EventOf<'TOOL_CALL_END'>): void {
    const call = open.get(toolCallId)
    if (!call) return
    open.delete(toolCallId)
    const { token, providerExecuted: _, ...own } = getCountersignMetadata(metadata)
    const said = provider({ ...own, ...omitUndefined({ encryptedValue: call.encryptedValue }) })
    if (token === undefined) complete(toolCallId, call, said)
    else leaveOpen(toolCallId, call, said)
  }

  function complete(toolCallId: string, call: OpenCall, said: Said): void {
    const input = call.arguments === '' ? {} : parseJson(call.arguments)
    const told = { toolCallId, toolName: call.name, ...executed(call.providerExecuted), ...said }
    if (input !== undefined) emit({ ...told, type: 'tool-input-available', input })
    else {
      const errorText = 'The arguments are not JSON.'
      emit({ ...told, type: 'tool-input-error', input: call.arguments, errorText })
    }
  }

  /**
   * The approval request follows. An SDK client runs a client tool as soon as its input is available, so that
   * chunk is withheld until the approval. The input was streamed, so the request still finds its call.
   */
  function leaveOpen(toolCallId: string, call: OpenCall, said: Said): void {
    if (call.arguments !== '' && said.providerMetadata === undefined) return
    const { name: toolName, providerExecuted } = call
    emit({ type: 'tool-input-start', toolCallId, toolName, ...executed(providerExecuted), ...said })
    emit({ type: 'tool-input-delta', toolCallId, inputTextDelta: call.arguments || '{}' })
  }

  function keepEncrypted({ subtype, entityId, encryptedValue }: EventOf<'REASONING_ENCRYPTED_VALUE'>): void {
    const call = subtype === 'tool-call' ? open.get(entityId) : undefined
    if (call) call.encryptedValue = encryptedValue
    else if (thought?.id === entityId) thought.own = { ...thought.own, encryptedValue }
  }

  function writeResult({ toolCallId, content, metadata }: EventOf<'TOOL_CALL_RESULT'>): void {
    const own = getCountersignMetadata(metadata)
    if (!shown.has(toolCallId)) {
      // An SDK client ignores this, and would fail with a result. Our own learns what became of a request that it had closed.
      const data = { toolCallId, content, said: own }
      if (own.decided !== undefined) emit({ type: 'data-countersign-result', data, transient: true })
      return
    }
    waiting.delete(toolCallId)
    const output = typeof content === 'string' ? parseJson(content, content) : content
    const reason = isRecord(output) ? asString(output.reason) : undefined
    const errorText = reason ?? 'The call has no result.'
    if (own.outcome === undefined)
      emit({ type: 'tool-output-available', toolCallId, output, ...provider(own) })
    else if (own.outcome === 'denied') {
      denied.push(toolCallId)
      emit({ type: 'tool-output-denied', toolCallId })
    } else emit({ type: 'tool-output-error', toolCallId, errorText, ...provider(own) })
  }

  function ask(toolCallId: string, approval: Readonly<Record<string, unknown>>): void {
    const { id, needsApproval: _, message, token, ...terms } = approval
    if (typeof id !== 'string' || !shown.has(toolCallId) || asked.has(id)) return
    asked.add(id)
    waiting.add(toolCallId)
    requests.set(toolCallId, id)
    const words = omitUndefined({ reason: asString(message), signature: asString(token) })
    emit({ type: 'tool-approval-request', approvalId: id, toolCallId, ...words, approvalDescriptor: terms })
  }

  function writeCustom({ name, value }: EventOf<'CUSTOM'>): void {
    const told = isRecord(value) ? value : {}
    const toolCallId = asString(told.toolCallId) ?? ''
    const isShown = shown.has(toolCallId)
    switch (name) {
      case 'approval-requested':
        ask(toolCallId, isRecord(told.approval) ? told.approval : {})
        break
      case 'tool-progress':
        if (isShown)
          emit({ type: 'tool-output-available', toolCallId, output: told.data ?? null, preliminary: true })
        break
      // An SDK client runs its own tool when it receives this input.
      case 'client-tool-ready':
        if (isShown)
          emit({
            type: 'tool-input-available',
            toolCallId,
            toolName: asString(told.toolName) ?? '',
            input: told.input,
          })
        break
      case 'source': {
        const { id, url, title } = told
        if (typeof id === 'string' && typeof url === 'string')
          emit({ type: 'source-url', sourceId: id, url, ...omitUndefined({ title: asString(title) }) })
        break
      }
      case 'message-metadata':
        emit({ type: name, messageMetadata: told.metadata })
        break
      default:
        emit({ type: `data-${name}`, data: value ?? null, transient: true })
    }
    if (name === 'approval-refused' && toolCallId === '') endUnknown(told)
  }

  /** Ends a call that the stored conversation no longer has, as after an edit on another page. Nothing else ends it on this page. */
  function endUnknown({ approvalId, message }: Readonly<Record<string, unknown>>): void {
    const errorText = asString(message) ?? 'The answer was refused.'
    for (const { toolCallId, state, approval } of known)
      if (state === 'approval-responded' && approval?.id === approvalId)
        emit({ type: 'tool-output-error', toolCallId, errorText })
  }

  /** An interrupt that is no tool approval is passed to the application, which cannot answer it over this stream. */
  function askAgain(interrupt: Interrupt): void {
    const { id, toolCallId, metadata } = interrupt
    const own = getCountersignMetadata(metadata)
    if (toolCallId !== undefined) ask(toolCallId, { id, ...(isRecord(own.approval) && own.approval) })
    else emit({ type: 'data-interrupt', id, data: interrupt })
  }

  /**
   * An SDK client whose last step contains only results sends another request by itself, endlessly if the
   * model has nothing to add. So a run that leaves nothing to the client ends with an extra step. The client
   * notices a step only with the next chunk; a repeated start is invisible.
   */
  function endWithoutCalls(): void {
    enter(`${messageId}/end`)
    begin()
  }

  /**
   * The SDK's predicates send the output of a client tool only if no call of its step is `output-denied`, or if one has an answer that was not
   * sent. So the denial stays an answer that was not sent until that output is sent. The server accepts the same answer twice.
   */
  function keepDenials(): void {
    for (const toolCallId of denied) {
      const approvalId = requests.get(toolCallId)
      if (approvalId !== undefined) emit({ type: 'tool-approval-response', approvalId, approved: false })
    }
  }

  function begin(): void {
    emit({ type: 'start', messageId: continued?.id ?? messageId })
  }

  function finish({ outcome, metadata }: EventOf<'RUN_FINISHED'>): void {
    if (outcome?.type === 'interrupt') for (const interrupt of outcome.interrupts) askAgain(interrupt)
    const left = outcome?.type === 'success' ? (outcome.pendingToolCallIds ?? []) : []
    // A call in a message that the client does not show is not left to it. The SDK sends only the answers of the last step.
    const isOutputLeft = left.some((id) => shown.has(id))
    if (isOutputLeft) keepDenials()
    if (hasCalls && waiting.size === 0 && !isOutputLeft) endWithoutCalls()
    if (step !== undefined) emit({ type: 'finish-step' })
    if (outcome?.type === 'cancelled') emit({ type: 'abort', reason: 'The run was stopped.' })
    else emit({ type: 'finish', finishReason: finishReason(metadata?.finishReason) })
  }

  function growCall({ toolCallId, delta }: EventOf<'TOOL_CALL_ARGS'>): void {
    const call = open.get(toolCallId)
    if (!call || delta === '') return
    call.arguments += delta
    emit({ type: 'tool-input-delta', toolCallId, inputTextDelta: delta })
  }

  function write(event: AGUIEvent): void {
    switch (event.type) {
      case 'RUN_STARTED':
        begin()
        break
      case 'TEXT_MESSAGE_START':
      case 'TEXT_MESSAGE_CONTENT':
      case 'TEXT_MESSAGE_END':
        writeText(event)
        break
      case 'REASONING_MESSAGE_START':
      case 'REASONING_MESSAGE_CONTENT':
      case 'REASONING_MESSAGE_END':
        writeThought(event)
        break
      case 'REASONING_ENCRYPTED_VALUE':
        keepEncrypted(event)
        break
      case 'TOOL_CALL_START':
        startCall(event)
        break
      case 'TOOL_CALL_ARGS':
        growCall(event)
        break
      case 'TOOL_CALL_END':
        endCall(event)
        break
      case 'TOOL_CALL_RESULT':
        writeResult(event)
        break
      case 'ACTIVITY_SNAPSHOT': {
        const { activityType, messageId: id, content, metadata } = event
        const data = getCountersignMetadata(metadata).isWrapped ? content.value : content
        emit({ type: `data-${activityType}`, id, data })
        break
      }
      case 'CUSTOM':
        writeCustom(event)
        break
      case 'RUN_FINISHED':
        finish(event)
        break
      case 'RUN_ERROR':
        emit({ type: 'error', errorText: event.message })
        break
      default:
      // State, steps and subagents do not exist in an AI SDK message.
    }
  }

  return (event) => {
    if (event.type !== 'REASONING_END' && event.type !== 'REASONING_ENCRYPTED_VALUE') endThought()
    write(event)
    const chunks = out
    out = []
    return chunks
  }
}

type Thought = EventOf<'REASONING_MESSAGE_START' | 'REASONING_MESSAGE_CONTENT' | 'REASONING_MESSAGE_END'>
type TextEvent = EventOf<'TEXT_MESSAGE_START' | 'TEXT_MESSAGE_CONTENT' | 'TEXT_MESSAGE_END'>
