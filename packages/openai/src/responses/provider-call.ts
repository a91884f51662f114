import type { ModelEvent, ProviderMetadata } from '@countersign/server'
import { failed, type ToolOutcome } from '@countersign/server/model-kit'
import type { ResponseOutputItem } from 'openai/resources/responses/responses'

/** Items that are not provider-executed calls. */
const others = new Set<ResponseOutputItem['type']>([
  'message',
  'reasoning',
  'compaction',
  'function_call',
  'function_call_output',
  'custom_tool_call',
  'custom_tool_call_output',
  'mcp_approval_request',
  'mcp_approval_response',
])

/** A finished item as the arguments and the result of a call. */
interface Told {
  /** JSON text. */
  readonly arguments: string
  readonly outcome: ToolOutcome | undefined
  readonly metadata: ProviderMetadata
}

/** A provider-executed call, from start to result. */
export class ProviderCall {
  readonly #item: ResponseOutputItem
  readonly #id: string
  #written = ''

  private constructor(item: ResponseOutputItem, id: string) {
    this.#item = item
    this.#id = id
  }

  static begin(item: ResponseOutputItem): ProviderCall | undefined {
    const { id } = item
    return others.has(item.type) || typeof id !== 'string' ? undefined : new ProviderCall(item, id)
  }

  *start(): Generator<ModelEvent> {
    const item = this.#item
    const asked = item.type === 'mcp_call' ? item.approval_request_id : undefined
    yield {
      type: 'tool-call-start',
      id: this.#id,
      name: item.type === 'mcp_call' ? item.name : item.type,
      providerExecuted: true,
      ...(asked && { approval: { id: asked, state: 'answered' } }),
    }
  }

  *grow(delta: string): Generator<ModelEvent> {
    if (delta === '') return
    // Code is streamed as the JSON that it becomes part of.
    const code = this.#item.type === 'code_interpreter_call'
    const text = code ? JSON.stringify(delta).slice(1, -1) : delta
    yield* this.#write(code && this.#written === '' ? `{"code":"${text}` : text)
  }

  *end(item: ResponseOutputItem): Generator<ModelEvent> {
    const { arguments: text, outcome, metadata } = told(item)
    yield* this.#write(this.#rest(text, item.type))
    const base = { type: item.type, itemId: this.#id, ...metadata }
    yield { type: 'tool-call-end', id: this.#id, metadata: base }
    if (outcome !== undefined) yield { type: 'tool-result', toolCallId: this.#id, outcome, metadata: base }
  }

  /** The rest that was not streamed. Code with an emoji split across deltas was streamed with escapes, so it is only closed. */
  #rest(text: string, type: ResponseOutputItem['type']): string {
    if (text.startsWith(this.#written)) return text.slice(this.#written.length)
    return type === 'code_interpreter_call' ? '"}' : ''
  }

  *#write(delta: string): Generator<ModelEvent> {
    if (delta === '') return
    this.#written += delta
    yield { type: 'tool-call-delta', id: this.#id, delta }
  }
}

function told(item: ResponseOutputItem): Told {
  switch (item.type) {
    case 'mcp_call':
      return {
        arguments: item.arguments,
        outcome: item.error
          ? failed('execution_error', textOf(item.error))
          : { kind: 'ok', value: item.output ?? null },
        metadata: {
          serverLabel: item.server_label,
          status: item.status,
          ...(item.approval_request_id && { approvalRequestId: item.approval_request_id }),
        },
      }
    case 'mcp_list_tools':
      return {
        arguments: JSON.stringify({ server_label: item.server_label }),
        outcome: item.error
          ? failed('execution_error', textOf(item.error))
          : { kind: 'ok', value: item.tools },
        metadata: { serverLabel: item.server_label },
      }
    case 'web_search_call':
      return {
        arguments: JSON.stringify(item.action ?? {}),
        outcome: ended(item.status, null),
        metadata: { status: item.status },
      }
    case 'file_search_call':
      return {
        arguments: JSON.stringify({ queries: item.queries }),
        outcome: ended(item.status, item.results ?? null),
        metadata: { status: item.status },
      }
    case 'code_interpreter_call':
      return {
        arguments: JSON.stringify({ code: item.code ?? '' }),
        outcome: ended(item.status, item.outputs ?? null),
        metadata: { status: item.status, containerId: item.container_id },
      }
    case 'image_generation_call':
      return {
        arguments: '{}',
        outcome: ended(item.status, item.result),
        metadata: { status: item.status },
      }
    default: {
      const { type: _, id: __, ...fields } = item
      return { arguments: JSON.stringify(fields), outcome: undefined, metadata: {} }
    }
  }
}

function ended(status: string, value: unknown): ToolOutcome {
  return status === 'failed' || status === 'incomplete'
    ? failed('execution_error', status)
    : { kind: 'ok', value }
}

function textOf(error: unknown): string {
  return typeof error === 'string' ? error : JSON.stringify(error)
}
