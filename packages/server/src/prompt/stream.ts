import {
  type AGUIEvent,
  asString,
  type EventOf,
  getCountersignMetadata,
  isRecord,
  omitUndefined,
  oneOf,
  parseJson,
  readApprovalEvent,
  type SourcePart,
  type ToolResultPart,
} from '@countersign/core'
import type {
  AssistantPart,
  PromptMessage,
  PromptPart,
  PromptToolResult,
  ToolApprovalRequestPart,
  ToolMessagePart,
} from './parts.js'

/** A piece of text. */
export interface TextDeltaPart {
  readonly type: 'text-delta'
  readonly messageId: string
  readonly delta: string
}

/** A piece of reasoning; `id` is that of the AG-UI reasoning message. */
export interface ReasoningDeltaPart {
  readonly type: 'reasoning-delta'
  readonly id: string
  readonly delta: string
}

/** The run is over. */
export interface FinishPart {
  readonly type: 'finish'
  /** `stop`, `tool_calls`, `length` and so on, if the server says. */
  readonly reason?: string
}

/** A whole part of a run's response. Plain JSON: the part itself is the encoded form. */
export type ResponsePart = AssistantPart | PromptToolResult
/** A part of a run's streamed response. */
export type StreamPart =
  | TextDeltaPart
  | ReasoningDeltaPart
  | SourcePart
  | Extract<AssistantPart, { type: 'tool-call' | 'tool-approval-request' }>
  | PromptToolResult
  | FinishPart
/** Any part of a prompt or a response. */
export type AnyPart = PromptPart | StreamPart

/** Takes events in order and returns the parts that each one completes. */
export type PartReader = (event: AGUIEvent) => readonly StreamPart[]

export interface PartReaderOptions {
  /** The messages before the run: they name the tools of results for older calls. */
  readonly history?: readonly PromptMessage[] | undefined
}

/** Reads the events of one run as parts: each call, then its request. A tool's progress report is a preliminary result. */
export function createPartReader({ history = [] }: PartReaderOptions = {}): PartReader {
  const older = namesOf(history)
  const calls = new Map<string, { readonly name: string; arguments: string; own: Record<string, unknown> }>()
  const nameOf = (id: string) => calls.get(id)?.name ?? older.get(id) ?? ''
  return (event) => {
    switch (event.type) {
      case 'TEXT_MESSAGE_CONTENT':
        return [{ type: 'text-delta', messageId: event.messageId, delta: event.delta }]
      case 'REASONING_MESSAGE_CONTENT':
        return [{ type: 'reasoning-delta', id: event.messageId, delta: event.delta }]
      case 'TOOL_CALL_START':
        calls.set(event.toolCallId, {
          name: event.toolCallName,
          arguments: '',
          own: getCountersignMetadata(event.metadata),
        })
        return []
      case 'TOOL_CALL_ARGS': {
        const call = calls.get(event.toolCallId)
        if (call !== undefined) call.arguments += event.delta
        return []
      }
      case 'TOOL_CALL_END': {
        const call = calls.get(event.toolCallId)
        if (call === undefined) return []
        const {
          token: _,
          providerExecuted,
          ...own
        } = { ...call.own, ...getCountersignMetadata(event.metadata) }
        const metadata = Object.keys(own).length > 0 ? { countersign: own } : undefined
        const executed = providerExecuted === true || undefined
        const { name, arguments: text } = call
        return [
          {
            type: 'tool-call',
            id: event.toolCallId,
            name,
            arguments: text,
            ...omitUndefined({ providerExecuted: executed, metadata }),
          },
        ]
      }
      case 'TOOL_CALL_RESULT':
        return [resultPart(nameOf(event.toolCallId), event)]
      case 'CUSTOM':
        return readCustom(event)
      case 'RUN_FINISHED':
        return [{ type: 'finish', ...omitUndefined({ reason: asString(event.metadata?.finishReason) }) }]
      default:
        return []
    }
  }
}

function namesOf(history: readonly PromptMessage[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>()
  for (const { role, content } of history)
    if (role === 'assistant')
      for (const part of content) if (part.type === 'tool-call') names.set(part.id, part.name)
  return names
}

function readCustom({ name, value }: EventOf<'CUSTOM'>): readonly StreamPart[] {
  switch (name) {
    case 'approval-requested':
      return readRequest(value)
    case 'tool-progress':
      return readProgress(value)
    case 'source': {
      const { id, url, title } = isRecord(value) ? value : {}
      if (typeof id !== 'string') return []
      return [{ type: 'source', id, ...omitUndefined({ url: asString(url), title: asString(title) }) }]
    }
    default:
      return []
  }
}

function readRequest(value: unknown): readonly ToolApprovalRequestPart[] {
  const asked = readApprovalEvent(value)
  if (asked === undefined) return []
  const { id: approvalId, needsApproval: _, ...terms } = asked.approval
  const { toolCallId } = asked
  return [{ type: 'tool-approval-request', approvalId, toolCallId, metadata: { countersign: terms } }]
}

function readProgress(value: unknown): readonly PromptToolResult[] {
  const { toolCallId, toolName, data } = isRecord(value) ? value : {}
  if (typeof toolCallId !== 'string' || typeof toolName !== 'string') return []
  const part = { type: 'tool-result', toolCallId, name: toolName, isFailure: false } as const
  return [{ ...part, result: data, preliminary: true }]
}

/** Creates the part for a result from its text; the text itself is kept only if its JSON is written differently. */
export function resultPart(
  name: string,
  { toolCallId, content, messageId, error, metadata }: ResultText,
): PromptToolResult {
  const result = typeof content === 'string' ? parseJson(content, content) : content
  const isSame = typeof content === 'string' && content === JSON.stringify(result)
  const outcome = oneOf(getCountersignMetadata(metadata).outcome, 'denied', 'cancelled', 'error')
  const isFailure = error !== undefined || outcome !== undefined
  const more = omitUndefined({ content: isSame ? undefined : content, error, metadata })
  return { type: 'tool-result', toolCallId, name, isFailure, result, messageId, ...more }
}

type ResultText = Omit<ToolResultPart, 'id' | 'type'> & { readonly messageId: string }

/** Combines the parts of a stream to whole parts: pieces of text are joined, the end of the run is omitted. */
export function toResponseParts(parts: Iterable<StreamPart>): ResponsePart[] {
  const whole: ResponsePart[] = []
  let writing: string | undefined
  for (const part of parts) {
    if (part.type === 'finish') continue
    const last = whole.at(-1)
    const now = pieceOf(part)
    if ('delta' in part) {
      if (writing === now && (last?.type === 'text' || last?.type === 'reasoning'))
        whole[whole.length - 1] = { ...last, text: last.text + part.delta }
      else if (part.type === 'text-delta') whole.push({ type: 'text', text: part.delta })
      else whole.push({ type: 'reasoning', id: part.id, text: part.delta })
    } else whole.push(part)
    writing = now
  }
  return whole
}

function pieceOf(part: StreamPart): string | undefined {
  if (part.type === 'text-delta') return `text ${part.messageId}`
  return part.type === 'reasoning-delta' ? `reasoning ${part.id}` : undefined
}

/**
 * Converts a run's response to history: calls and requests in an assistant message, results in the tool message after it, in order.
 * Preliminary results are omitted. `newId` generates the ids of assistant messages.
 */
export function fromResponseParts(parts: Iterable<ResponsePart>, newId: () => string): PromptMessage[] {
  const messages: PromptMessage[] = []
  let content: AssistantPart[] = []
  let results: ToolMessagePart[] = []
  const close = () => {
    if (content.length > 0) messages.push({ id: newId(), role: 'assistant', content })
    if (results.length > 0) messages.push({ role: 'tool', content: results })
    content = []
    results = []
  }
  for (const part of parts) {
    if (part.type === 'tool-result') {
      if (!part.preliminary) results.push(part)
      continue
    }
    if (results.length > 0) close()
    content.push(part)
  }
  close()
  return messages
}
