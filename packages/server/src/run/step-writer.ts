import type { AGUIEvent, Message, ToolCall } from '@countersign/core'
import { ownMetadata } from '../history/metadata.js'
import type { ProviderMetadata } from '../model/model.js'
import type { Emit } from '../scope/channel.js'

type AssistantMessage = Extract<Message, { role: 'assistant' }>

/** A call as its arguments arrive. */
export interface WrittenCall {
  readonly id: string
  readonly name: string
  readonly providerExecuted: boolean
  arguments: string
}

/** What is said when a call's arguments are complete. */
export interface CallEnd {
  /** Of the request, where the gate asked. */
  readonly token?: string | undefined
  readonly signature?: string | undefined
  readonly metadata?: ProviderMetadata | undefined
}

/**
 * One step of a model as events and, for the next step, as messages: one assistant message with its text and calls, and its
 * reasoning beside it. Keeps the brackets of AG-UI: text is closed by whatever follows it and opened again, under the same id,
 * when it resumes.
 */
export class StepWriter {
  readonly messageId: string
  readonly #emit: Emit<AGUIEvent>
  readonly #newId: () => string
  readonly #reasoning: Extract<Message, { role: 'reasoning' }>[] = []
  readonly #calls: ToolCall[] = []
  readonly #open = new Map<string, WrittenCall>()
  #text: string[] = []
  #textMetadata: ProviderMetadata | undefined
  #writing: 'nothing' | 'text' | { readonly id: string; text: string } = 'nothing'

  constructor(emit: Emit<AGUIEvent>, newId: () => string) {
    this.#emit = emit
    this.#newId = newId
    this.messageId = newId()
  }

  async text(delta: string): Promise<void> {
    if (delta === '') return
    const { messageId } = this
    if (this.#writing !== 'text') {
      await this.close()
      this.#writing = 'text'
      await this.#emit({ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' })
    }
    this.#text.push(delta)
    await this.#emit({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta })
  }

  async endText(metadata?: ProviderMetadata): Promise<void> {
    if (this.#writing !== 'text') return
    this.#textMetadata = metadata ?? this.#textMetadata
    await this.close()
  }

  async reasoning(delta: string): Promise<void> {
    if (typeof this.#writing !== 'object') {
      await this.close()
      const id = this.#newId()
      this.#writing = { id, text: '' }
      await this.#emit({ type: 'REASONING_START', messageId: id })
      const owner = ownMetadata({ messageId: this.messageId })
      await this.#emit({ type: 'REASONING_MESSAGE_START', messageId: id, role: 'reasoning', ...owner })
    }
    this.#writing.text += delta
    if (delta !== '')
      await this.#emit({ type: 'REASONING_MESSAGE_CONTENT', messageId: this.#writing.id, delta })
  }

  async endReasoning(signature?: string, provider?: ProviderMetadata): Promise<void> {
    if (typeof this.#writing !== 'object') {
      // encrypted thoughts come without any text
      if (signature === undefined && provider === undefined) return
      await this.reasoning('')
    }
    if (typeof this.#writing !== 'object') return
    const { id, text } = this.#writing
    this.#writing = 'nothing'
    // metadata is merged key by key, so the key says again what it said at the start
    const own = ownMetadata({ messageId: this.messageId, provider })
    await this.#emit({ type: 'REASONING_MESSAGE_END', messageId: id, ...own })
    await this.#emit({ type: 'REASONING_END', messageId: id })
    if (signature !== undefined) {
      await this.#emit({
        type: 'REASONING_ENCRYPTED_VALUE',
        subtype: 'message',
        entityId: id,
        encryptedValue: signature,
      })
    }
    this.#reasoning.push({
      id,
      role: 'reasoning',
      content: text,
      ...(signature !== undefined && { encryptedValue: signature }),
      ...own,
    })
  }

  async startCall(id: string, name: string, providerExecuted = false): Promise<WrittenCall> {
    await this.close()
    const call = { id, name, providerExecuted, arguments: '' }
    this.#open.set(id, call)
    const own = ownMetadata({ providerExecuted: providerExecuted || undefined })
    await this.#emit({
      type: 'TOOL_CALL_START',
      toolCallId: id,
      toolCallName: name,
      parentMessageId: this.messageId,
      ...own,
    })
    return call
  }

  async growCall(call: WrittenCall, delta: string): Promise<void> {
    if (delta === '') return
    call.arguments += delta
    await this.#emit({ type: 'TOOL_CALL_ARGS', toolCallId: call.id, delta })
  }

  async endCall(call: WrittenCall, { token, signature, metadata: provider }: CallEnd = {}): Promise<void> {
    const { id, name, arguments: text, providerExecuted } = call
    this.#open.delete(id)
    const own = ownMetadata({ token, provider, providerExecuted: providerExecuted || undefined })
    this.#calls.push({
      id,
      type: 'function',
      function: { name, arguments: text },
      ...(signature !== undefined && { encryptedValue: signature }),
      ...own,
    })
    if (signature !== undefined) {
      await this.#emit({
        type: 'REASONING_ENCRYPTED_VALUE',
        subtype: 'tool-call',
        entityId: id,
        encryptedValue: signature,
      })
    }
    await this.#emit({ type: 'TOOL_CALL_END', toolCallId: id, ...own })
  }

  /** Calls whose arguments are not complete. */
  get openCalls(): readonly WrittenCall[] {
    return [...this.#open.values()]
  }

  /** Closes text or reasoning that is being written. */
  async close(): Promise<void> {
    if (typeof this.#writing === 'object') return this.endReasoning()
    if (this.#writing === 'nothing') return
    this.#writing = 'nothing'
    const provider = ownMetadata({ provider: this.#textMetadata })
    await this.#emit({ type: 'TEXT_MESSAGE_END', messageId: this.messageId, ...provider })
  }

  /** The step as messages: the reasoning, then the assistant message, if there is anything in it. */
  messages(): readonly Message[] {
    const content = this.#text.join('')
    if (content === '' && this.#calls.length === 0) return this.#reasoning
    const message: AssistantMessage = {
      id: this.messageId,
      role: 'assistant',
      ...(content !== '' && { content }),
      ...(this.#calls.length > 0 && { toolCalls: [...this.#calls] }),
      ...ownMetadata({ provider: this.#textMetadata }),
    }
    return [...this.#reasoning, message]
  }
}
