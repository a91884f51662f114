import type { ModelEvent } from '@countersign/server'
import { asRecord, asText, type Fields, failed, type ToolOutcome } from '@countersign/server/model-kit'
import { sourceOf } from './sources.js'

/** A content block in progress. */
type OpenBlock =
  | { readonly kind: 'text'; readonly citations: unknown[] }
  | { readonly kind: 'thinking'; signature: string }
  | { readonly kind: 'redacted'; readonly data: string }
  | {
      readonly kind: 'call'
      readonly id: string
      readonly end: ModelEvent
      written: boolean
      readonly given: Fields
    }
  | {
      readonly kind: 'server-call'
      readonly id: string
      readonly end: ModelEvent
      written: boolean
      readonly given: Fields
    }

/**
 * The content blocks of one reply. The end of a client call is held back until the next event shows that the call
 * is complete: if the reply is cut off, its last block may be closed although its arguments are incomplete.
 */
export class AnswerBlocks {
  readonly #open = new Map<number, OpenBlock>()
  #held: ModelEvent | undefined
  #sources = 0;

  *start(index: number, block: Fields): Generator<ModelEvent> {
    yield* this.endHeld()
    const type = asText(block.type) ?? ''
    switch (type) {
      case 'text':
        this.#open.set(index, { kind: 'text', citations: [] })
        yield* this.grow(index, { type: 'text_delta', text: block.text })
        return
      case 'thinking':
        this.#open.set(index, { kind: 'thinking', signature: asText(block.signature) ?? '' })
        yield* this.grow(index, { type: 'thinking_delta', thinking: block.thinking })
        return
      case 'redacted_thinking':
        this.#open.set(index, { kind: 'redacted', data: asText(block.data) ?? '' })
        return
      case 'tool_use':
      case 'server_tool_use':
      case 'mcp_tool_use':
        yield* this.#startCall(index, type, block)
        return
      default:
        if (type.endsWith('_tool_result')) yield resultEvent(type, block)
    }
  }

  *#startCall(index: number, type: string, block: Fields): Generator<ModelEvent> {
    const id = asText(block.id) ?? ''
    const name = asText(block.name) ?? ''
    const server = asText(block.server_name)
    const metadata = {
      type,
      ...(server !== undefined && { serverLabel: server }),
      ...(isProgram(block.caller) && { caller: block.caller }),
    }
    const kind = type === 'tool_use' ? 'call' : 'server-call'
    const end: ModelEvent = { type: 'tool-call-end', id, metadata }
    this.#open.set(index, { kind, id, end, written: false, given: asRecord(block.input) })
    yield { type: 'tool-call-start', id, name, ...(kind === 'server-call' && { providerExecuted: true }) }
  }

  *grow(index: number, delta: Fields): Generator<ModelEvent> {
    const block = this.#open.get(index)
    if (block === undefined) return
    const said = asText(delta.text) ?? asText(delta.thinking) ?? ''
    if (block.kind === 'text' && delta.type === 'text_delta' && said !== '')
      yield { type: 'text-delta', delta: said }
    if (block.kind === 'text' && delta.type === 'citations_delta') {
      block.citations.push(delta.citation)
      yield { type: 'source', source: sourceOf(delta.citation, `source_${this.#sources++}`) }
    }
    if (block.kind === 'thinking' && delta.type === 'thinking_delta' && said !== '')
      yield { type: 'reasoning-delta', delta: said }
    if (block.kind === 'thinking' && delta.type === 'signature_delta')
      block.signature += asText(delta.signature) ?? ''
    if ((block.kind === 'call' || block.kind === 'server-call') && delta.type === 'input_json_delta') {
      const text = asText(delta.partial_json) ?? ''
      if (text === '') return
      block.written = true
      yield { type: 'tool-call-delta', id: block.id, delta: text }
    }
  }

  *stop(index: number): Generator<ModelEvent> {
    const block = this.#open.get(index)
    if (block === undefined) return
    this.#open.delete(index)
    switch (block.kind) {
      case 'text': {
        const { citations } = block
        yield { type: 'text-end', ...(citations.length > 0 && { metadata: { citations } }) }
        return
      }
      case 'thinking':
        yield thoughtEnd('thinking', block.signature)
        return
      case 'redacted':
        yield thoughtEnd('redacted_thinking', block.data)
        return
      case 'call':
      case 'server-call':
        // The input arrives complete if a proxy between the provider and us assembled it.
        if (!block.written && Object.keys(block.given).length > 0)
          yield { type: 'tool-call-delta', id: block.id, delta: JSON.stringify(block.given) }
        if (block.kind === 'call') this.#held = block.end
        else yield block.end
        return
      default:
        block satisfies never
    }
  }

  /** The held-back call is complete. */
  *endHeld(): Generator<ModelEvent> {
    if (this.#held === undefined) return
    yield this.#held
    this.#held = undefined
  }
}

/** Reasoning must be sent back unchanged: stores the type of its block, and its signature or encrypted content. */
function thoughtEnd(type: string, signature: string): ModelEvent {
  return { type: 'reasoning-end', ...(signature !== '' && { signature }), metadata: { type } }
}

/** Whether the call was made by code that the provider ran; this has to be sent back with it. */
function isProgram(caller: unknown): boolean {
  const { type } = asRecord(caller)
  return typeof type === 'string' && type !== 'direct'
}

/** The result of a provider's tool. Its value is the content, which must be sent back unchanged. */
function resultEvent(
  type: string,
  { tool_use_id: id, content, is_error: isError, caller }: Fields,
): ModelEvent {
  const fault = asText(asRecord(content).error_code)
  const outcome: ToolOutcome =
    fault !== undefined || isError === true
      ? failed(
          'execution_error',
          `The provider's tool failed${fault === undefined ? '' : `: ${fault}`}.`,
          fault,
        )
      : { kind: 'ok', value: content ?? null }
  return {
    type: 'tool-result',
    toolCallId: asText(id) ?? '',
    outcome,
    metadata: {
      type,
      ...(outcome.kind !== 'ok' && { content }),
      ...(isProgram(caller) && { caller }),
    },
  }
}
