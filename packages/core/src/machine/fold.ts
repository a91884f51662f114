import type {
  DataPart,
  FilePart,
  MessagePart,
  ReasoningPart,
  SourcePart,
  ToolCallPart,
  ToolResultPart,
  UIMessage,
} from '../messages.js'
import type {
  AssistantMessage,
  ContentPart,
  Message,
  ReasoningMessage,
  ToolCall,
  ToolMessage,
} from '../protocol/events.js'
import { isRefusal, readApproval } from './approvals.js'
import { readOutcome } from './tool-calls.js'
import { isRecord, ours, readCallMetadata, withOwn } from './value.js'

/**
 * AG-UI messages as a person sees them: reasoning and tool results become part of the assistant message they belong to. The order of
 * parts, which AG-UI 1.0 does not keep between text and calls, is taken from `metadata.countersign.order` where a peer wrote it.
 */
export function foldMessages(messages: readonly Message[]): UIMessage[] {
  const folded: Draft[] = []
  const open: OpenCalls = new Map()
  let reasoning: ReasoningPart[] = []
  for (const message of messages) {
    if (message.role === 'reasoning') {
      reasoning.push(foldReasoning(message))
      continue
    }
    if (message.role === 'tool') {
      foldResult(message, open)
      continue
    }
    if (message.role === 'assistant') {
      const draft = draftAssistant(message, reasoning)
      draft.calls.forEach((part, index) => {
        const same = open.get(part.id)
        if (same) same.push({ draft, index })
        else open.set(part.id, [{ draft, index }])
      })
      folded.push(draft)
    } else {
      folded.push(...reasoning.map(bareReasoning), draftPlain(message))
    }
    reasoning = []
  }
  folded.push(...reasoning.map(bareReasoning))
  return folded.map(finish)
}

/** Where the calls without a result are, by id. */
type OpenCalls = Map<string, { readonly draft: Draft; readonly index: number }[]>

/** A message while its parts are collected. */
interface Draft {
  readonly id: string
  readonly role: UIMessage['role']
  readonly metadata: Record<string, unknown> | undefined
  readonly content: string
  readonly reasoning: readonly ReasoningPart[]
  readonly calls: ToolCallPart[]
  readonly results: ToolResultPart[]
  readonly plain: readonly MessagePart[]
}

const empty = { metadata: undefined, content: '', reasoning: [], plain: [] }

function draftAssistant(message: AssistantMessage, reasoning: readonly ReasoningPart[]): Draft {
  return {
    ...empty,
    id: message.id,
    role: 'assistant',
    metadata: withOrigin(message),
    content: message.content ?? '',
    reasoning,
    calls: (message.toolCalls ?? []).map(foldCall),
    results: [],
  }
}

/** What AG-UI keeps beside a message: opaque provider content, and the subagent that speaks. */
function withOrigin(message: AssistantMessage): Record<string, unknown> | undefined {
  const { metadata, encryptedValue, subagentRunId } = message
  return {
    ...(subagentRunId !== undefined && { subagent: { id: subagentRunId } }),
    ...metadata,
    ...(encryptedValue !== undefined && { countersign: { ...ours(metadata), encryptedValue } }),
  }
}

function bareReasoning(part: ReasoningPart): Draft {
  return { ...empty, id: part.id, role: 'assistant', reasoning: [part], calls: [], results: [] }
}

function draftPlain(message: Exclude<Message, AssistantMessage | ToolMessage | ReasoningMessage>): Draft {
  const base = { ...empty, id: message.id, metadata: message.metadata, calls: [], results: [] }
  switch (message.role) {
    case 'activity':
      return {
        ...base,
        role: 'assistant',
        plain: [{ type: 'data', name: message.activityType, data: message.content }],
      }
    case 'user':
      return { ...base, role: 'user', plain: foldContent(message.content) }
    case 'system':
    case 'developer':
      return { ...base, role: 'system', content: message.content }
    default:
      return message satisfies never
  }
}

function foldContent(content: string | readonly ContentPart[]): MessagePart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return content.map((part) => (part.type === 'text' ? { type: 'text', text: part.text } : foldFile(part)))
}

function foldFile(part: Exclude<ContentPart, { type: 'text' }>): FilePart {
  return {
    type: 'file',
    media: part.type,
    source: part.source,
    ...(isRecord(part.metadata) && { metadata: part.metadata }),
  }
}

function foldReasoning(message: ReasoningMessage): ReasoningPart {
  return {
    type: 'reasoning',
    id: message.id,
    text: message.content,
    ...(message.encryptedValue !== undefined && { encryptedValue: message.encryptedValue }),
    ...(message.metadata && { metadata: message.metadata }),
  }
}

function foldCall(call: ToolCall): ToolCallPart {
  const { token, approval: asked, state, providerExecuted, error, kept } = readCallMetadata(call.metadata)
  const { encryptedValue } = call
  const metadata = encryptedValue === undefined ? kept : withOwn(kept, { ...ours(kept), encryptedValue })
  const approval = foldApproval(asked, token)
  const text = call.function.arguments
  return {
    type: 'tool-call',
    id: call.id,
    name: call.function.name,
    arguments: text,
    state: state === 'cancelled' || state === 'executing' ? state : callState(approval),
    ...readInput(text),
    ...(approval && { approval }),
    ...(isRecord(error) &&
      typeof error.message === 'string' && { error: { ...error, message: error.message } }),
    ...(providerExecuted === true && { providerExecuted: true }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  }
}

/** Arguments that are empty mean none; arguments that are not JSON leave no input. */
function readInput(text: string): { input?: unknown } {
  try {
    return { input: text === '' ? {} : JSON.parse(text) }
  } catch {
    return {}
  }
}

/** Our own record of a question and its answer, in a history that comes back to us. */
function foldApproval(value: unknown, token: unknown): ToolCallPart['approval'] {
  const asked = readApproval(isRecord(value) ? { ...value, token } : undefined)
  if (!asked || !isRecord(value)) return undefined
  const { approved, reason, scope, delivery, problem, input } = value
  return {
    ...asked,
    ...(typeof approved === 'boolean' && { approved }),
    ...(typeof reason === 'string' && { reason }),
    ...((scope === 'once' || scope === 'session') && { scope }),
    ...(input !== undefined && { input }),
    ...(isDelivery(delivery) && { delivery }),
    ...(isRefusal(problem) && { problem }),
  }
}

function isDelivery(value: unknown): value is NonNullable<NonNullable<ToolCallPart['approval']>['delivery']> {
  return value === 'waiting' || value === 'sent' || value === 'settled' || value === 'unknown'
}

function callState(approval: ToolCallPart['approval']): ToolCallPart['state'] {
  if (!approval) return 'input-complete'
  return approval.approved === undefined ? 'approval-requested' : 'approval-responded'
}

/** A result answers the nearest earlier call with its id that has none yet. */
function foldResult(message: ToolMessage, open: OpenCalls): void {
  const target = open.get(message.toolCallId)?.pop()
  const part = target?.draft.calls[target.index]
  if (!target || !part) return
  const { draft, index } = target
  // What was cancelled here stays so, whatever the server says of it afterwards.
  if (part.state !== 'cancelled') {
    draft.calls[index] = { ...part, ...readOutcome(part, message.content, message.metadata, message.error) }
  }
  draft.results.push({
    type: 'tool-result',
    id: message.id,
    toolCallId: message.toolCallId,
    content: message.content,
    ...(message.error !== undefined && { error: message.error }),
    ...(message.metadata && { metadata: message.metadata }),
  })
}

function finish(draft: Draft): UIMessage {
  const own = ours(draft.metadata)
  const { order, createdAt, ...kept } = own
  const { countersign: _, ...rest } = draft.metadata ?? {}
  const metadata = { ...rest, ...(Object.keys(kept).length > 0 && { countersign: kept }) }
  return {
    id: draft.id,
    role: draft.role,
    parts: arrange(draft, order),
    ...(Object.keys(metadata).length > 0 && { metadata }),
    ...(typeof createdAt === 'number' && { createdAt }),
  }
}

/**
 * One step of `metadata.countersign.order`: how many characters of text, the next reasoning (`r`), call (`c`), result (`o`) or plain
 * content part (`p`), or a part that AG-UI has no place for.
 */
export type OrderStep = number | 'r' | 'c' | 'o' | 'p' | EmbeddedPart

/** Never a call: a history must not bring in an approval by this way. */
type EmbeddedPart = FilePart | SourcePart | DataPart

function isEmbedded(value: unknown): value is EmbeddedPart {
  if (!isRecord(value)) return false
  switch (value.type) {
    case 'file':
      return (
        typeof value.media === 'string' && isRecord(value.source) && typeof value.source.value === 'string'
      )
    case 'source':
      return typeof value.id === 'string'
    case 'data':
      return typeof value.name === 'string'
    default:
      return false
  }
}

function arrange(draft: Draft, order: unknown): MessagePart[] {
  const fallback: MessagePart[] = [
    ...draft.reasoning,
    ...(draft.content === '' ? [] : [{ type: 'text' as const, text: draft.content }]),
    ...draft.plain,
    ...draft.calls,
    ...draft.results,
  ]
  if (!Array.isArray(order)) return fallback
  const reasoning = draft.reasoning.values()
  const calls = draft.calls.values()
  const results = draft.results.values()
  const plain = draft.plain.values()
  let at = 0
  const parts: (MessagePart | undefined)[] = order.map((step: unknown) => {
    if (typeof step === 'number' && Number.isInteger(step) && step >= 0) {
      const text = draft.content.slice(at, at + step)
      at += step
      return { type: 'text', text }
    }
    if (step === 'r') return reasoning.next().value
    if (step === 'c') return calls.next().value
    if (step === 'o') return results.next().value
    if (step === 'p') return plain.next().value
    return isEmbedded(step) ? step : undefined
  })
  const complete =
    [reasoning, calls, results, plain].every((rest) => rest.next().done) && at === draft.content.length
  return complete && !parts.includes(undefined) ? parts.filter((part) => part !== undefined) : fallback
}
