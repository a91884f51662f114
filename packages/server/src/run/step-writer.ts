import type { AGUIEvent, AssistantMessage, Message, ReasoningMessage, ToolCall } from '@countersign/core'
import { ownMetadata } from '../history/metadata.js'
import { isUsualOrder, type OrderStep } from '../history/order.js'
import type { ProviderMetadata } from '../model/model.js'
import type { Emit } from '../scope/channel.js'
import type { StructuredOutput } from '../scope/output.js'
import { isReserved } from '../tools/toolkit.js'

/** A call whose arguments are arriving. */
export interface WrittenCall {
  readonly id: string
  readonly name: string
  readonly providerExecuted: boolean
  /** The id of the provider's own approval request for a call that it runs itself. */
  readonly approvalId?: string | undefined
  arguments: string
}

/** A piece of text: it ends where the model ends it, or where something else follows. */
interface WrittenText {
  readonly deltas: string[]
  length: number
  metadata?: ProviderMetadata | undefined
}

/** What is sent when a call's arguments are complete. */
export interface CallEnd {
  /** The approval request's token, if the gate requires approval. */
  readonly token?: string | undefined
  readonly signature?: string | undefined
  readonly metadata?: ProviderMetadata | undefined
}

/**
 * Writes one step of a model as events and, for the next step, as messages: one assistant message with its text and calls, and its
 * reasoning beside it. Keeps AG-UI's start and end events paired: text is closed by whatever follows it, and started again under the
 * same id when it resumes.
 */
export class StepWriter {
  readonly #reasoning: ReasoningMessage[] = []
  readonly #calls: ToolCall[] = []
  readonly #open = new Map<string, WrittenCall>()
  readonly #texts: WrittenText[] = []
  readonly #order: OrderStep[] = []
  #text: WrittenText | undefined
  #writing: 'nothing' | 'text' | { readonly id: string; text: string } = 'nothing'

  /** `provider` is the key under which the model's metadata is stored. `isStructured`: the text may be the JSON of a structured reply. */
  constructor(
    private readonly emit: Emit<AGUIEvent>,
    private readonly newId: () => string,
    readonly messageId: string,
    private readonly provider: string,
    private readonly isStructured: boolean,
  ) {}

  /** Like all writers of deltas, returns a promise only if there is something to wait for. */
  text(delta: string): Promise<void> | undefined {
    if (delta === '') return undefined
    return this.#writing === 'text'
      ? this.#growText(delta)
      : this.#beginText().then(() => this.#growText(delta))
  }

  async #beginText(): Promise<void> {
    await this.close()
    this.#writing = 'text'
    await this.#startText()
  }

  #growText(delta: string): Promise<void> | undefined {
    if (this.#text === undefined) {
      this.#text = { deltas: [], length: 0 }
      this.#texts.push(this.#text)
    }
    this.#text.deltas.push(delta)
    this.#text.length += delta.length
    return this.emit({ type: 'TEXT_MESSAGE_CONTENT', messageId: this.messageId, delta })
  }

  /** Ends a piece of text. The message stays open: another piece may follow at once. */
  endText(metadata?: ProviderMetadata): void {
    if (this.#text === undefined) return
    this.#text.metadata = metadata
    this.#order.push(this.#text.length)
    this.#text = undefined
  }

  async reasoning(delta: string): Promise<void> {
    if (typeof this.#writing !== 'object') {
      await this.close()
      const id = this.newId()
      this.#writing = { id, text: '' }
      await this.emit({ type: 'REASONING_START', messageId: id })
      const owner = ownMetadata({ messageId: this.messageId })
      await this.emit({ type: 'REASONING_MESSAGE_START', messageId: id, role: 'reasoning', ...owner })
    }
    this.#writing.text += delta
    if (delta !== '')
      await this.emit({ type: 'REASONING_MESSAGE_CONTENT', messageId: this.#writing.id, delta })
  }

  async endReasoning(signature?: string, provider?: ProviderMetadata): Promise<void> {
    if (typeof this.#writing !== 'object') {
      // Encrypted reasoning comes without text.
      if (signature === undefined && provider === undefined) return
      await this.reasoning('')
    }
    if (typeof this.#writing !== 'object') return
    const { id, text } = this.#writing
    this.#writing = 'nothing'
    this.#order.push('r')
    // Metadata is merged key by key, so the key repeats what it said at the start.
    const own = ownMetadata({ messageId: this.messageId, provider: this.#owned(provider) })
    await this.emit({ type: 'REASONING_MESSAGE_END', messageId: id, ...own })
    await this.emit({ type: 'REASONING_END', messageId: id })
    await this.#emitSignature('message', id, signature)
    const signed = signature === undefined ? {} : { encryptedValue: signature }
    this.#reasoning.push({ id, role: 'reasoning', content: text, ...signed, ...own })
  }

  async #emitSignature(subtype: 'message' | 'tool-call', entityId: string, encryptedValue?: string) {
    if (encryptedValue !== undefined)
      await this.emit({ type: 'REASONING_ENCRYPTED_VALUE', subtype, entityId, encryptedValue })
  }

  async startCall(
    id: string,
    name: string,
    provider: Pick<WrittenCall, 'approvalId'> & { readonly providerExecuted?: boolean | undefined } = {},
  ): Promise<WrittenCall> {
    await this.close()
    const { providerExecuted = false, approvalId } = provider
    const call = { id, name, providerExecuted, approvalId, arguments: '' }
    this.#open.set(id, call)
    const own = ownMetadata({ providerExecuted: providerExecuted || undefined })
    const start = { toolCallId: id, toolCallName: shownName(name), parentMessageId: this.messageId }
    await this.emit({ type: 'TOOL_CALL_START', ...start, ...own })
    return call
  }

  growCall(call: WrittenCall, delta: string): Promise<void> | undefined {
    if (delta === '') return undefined
    call.arguments += delta
    return this.emit({ type: 'TOOL_CALL_ARGS', toolCallId: call.id, delta })
  }

  async endCall(call: WrittenCall, { token, signature, metadata: provider }: CallEnd = {}): Promise<void> {
    const { id, name, arguments: text, providerExecuted } = call
    this.#open.delete(id)
    this.#order.push('c')
    const own = ownMetadata({
      token,
      provider: this.#owned(provider),
      providerExecuted: providerExecuted || undefined,
      providerApproval: call.approvalId,
    })
    const signed = signature === undefined ? {} : { encryptedValue: signature }
    const called = { name: shownName(name), arguments: text }
    this.#calls.push({ id, type: 'function', function: called, ...signed, ...own })
    await this.#emitSignature('tool-call', id, signature)
    await this.emit({ type: 'TOOL_CALL_END', toolCallId: id, ...own })
  }

  /** A call whose arguments are complete, as the next step will find it. */
  writtenCall(id: string): ToolCall | undefined {
    return this.#calls.find((call) => call.id === id)
  }

  get openCalls(): readonly WrittenCall[] {
    return [...this.#open.values()]
  }

  #startText(): Promise<void> | undefined {
    const own = ownMetadata({ output: this.isStructured ? 'partial' : undefined })
    return this.emit({ type: 'TEXT_MESSAGE_START', messageId: this.messageId, role: 'assistant', ...own })
  }

  /** Closes the text or reasoning being written. `output`: the text is the JSON of a valid structured reply. */
  async close(output?: StructuredOutput['verdict']): Promise<void> {
    if (typeof this.#writing === 'object') await this.endReasoning()
    if (this.#writing === 'nothing') {
      if (output === undefined) return
      await this.#startText()
    }
    this.#writing = 'nothing'
    this.endText()
    await this.emit({
      type: 'TEXT_MESSAGE_END',
      messageId: this.messageId,
      ...ownMetadata({ ...this.#textMetadata(), output }),
    })
  }

  /** For one piece, its provider metadata; for several, the length and metadata of each. Repeated in full with every end: the last counts. */
  #textMetadata(): Record<string, unknown> {
    const [first, second] = this.#texts
    if (second === undefined) return { provider: this.#owned(first?.metadata) }
    return {
      texts: this.#texts.map(({ length, metadata }) => {
        const provider = this.#owned(metadata)
        return { length, ...(provider !== undefined && { provider }) }
      }),
    }
  }

  get content(): string {
    return this.#texts.map(({ deltas }) => deltas.join('')).join('')
  }

  /** The step as messages: the reasoning, then the assistant message unless it is empty. */
  messages(): readonly Message[] {
    const { content } = this
    if (content === '' && this.#calls.length === 0) return this.#reasoning
    const message: AssistantMessage = {
      id: this.messageId,
      role: 'assistant',
      ...(content !== '' && { content }),
      ...(this.#calls.length > 0 && { toolCalls: [...this.#calls] }),
      ...ownMetadata({ ...this.#textMetadata(), order: isUsualOrder(this.#order) ? undefined : this.#order }),
    }
    return [...this.#reasoning, message]
  }

  #owned(metadata: ProviderMetadata | undefined): Readonly<Record<string, ProviderMetadata>> | undefined {
    return metadata && { [this.provider]: metadata }
  }
}

/** A model may have made up a reserved name. It is sent under another, so that no client takes the call for an approval request. */
function shownName(name: string): string {
  return isReserved(name) ? `refused_${name.replace(/[^\w-]/g, '_')}`.slice(0, 64) : name
}
