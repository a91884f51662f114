import type { OrderStep } from '../machine/fold.js'
import { isRecord, ours, readCallMetadata, withOwn } from '../machine/value.js'
import type {
  FilePart,
  MessagePart,
  ReasoningPart,
  TextPart,
  ToolCallPart,
  ToolResultPart,
  UIMessage,
} from '../messages.js'
import type { ContentPart, Message, ToolCall } from '../protocol/events.js'

/**
 * The conversation as AG-UI messages, for a request. `fromAGUIMessages` gives back the same UI messages: the order of parts, the
 * questions asked of the person and the answers travel in `metadata.countersign`. Calls whose arguments never became complete stay out.
 */
export function toAGUIMessages(messages: readonly UIMessage[]): Message[] {
  return messages.flatMap((message) => {
    if (message.role === 'assistant') return unfoldAssistant(message)
    const { id } = message
    if (message.role === 'user') {
      return [{ id, role: 'user', content: contentOf(message), ...metadataOf(message, plainOrder(message)) }]
    }
    return [{ id, role: 'system', content: textOf(message), ...metadataOf(message, contentOrder(message)) }]
  })
}

function unfoldAssistant(message: UIMessage): Message[] {
  const reasoning = message.parts.filter(isType('reasoning'))
  const all = message.parts.filter(isType('tool-call'))
  const calls = all.filter(isSendable)
  const kept = new Set(calls.map((call) => call.id))
  const dropped = new Set(all.flatMap((call) => (kept.has(call.id) ? [] : [call.id])))
  const results = message.parts.filter(isType('tool-result')).filter((part) => !dropped.has(part.toolCallId))
  const thoughts = reasoning.map(unfoldReasoning)
  if (isBareReasoning(message)) return thoughts
  const [first] = message.parts
  // AG-UI 1.0: a client keeps activities to itself.
  if (message.parts.length === 1 && first?.type === 'data') return []
  const content = textOf(message)
  const { encryptedValue } = ours(message.metadata)
  return [
    ...thoughts,
    {
      id: message.id,
      role: 'assistant',
      ...(content !== '' || calls.length === 0 ? { content } : {}),
      ...(calls.length > 0 && { toolCalls: calls.map(unfoldCall) }),
      ...(typeof encryptedValue === 'string' && { encryptedValue }),
      ...subagentOf(message),
      ...metadataOf(message, contentOrder(message)),
    },
    ...results.map(unfoldResult),
  ]
}

/** Thoughts that no message followed. */
function isBareReasoning({ id, parts: [first, ...rest], metadata, createdAt }: UIMessage): boolean {
  const nothingElse = rest.length === 0 && metadata === undefined && createdAt === undefined
  return first?.type === 'reasoning' && first.id === id && nothingElse
}

function isType<Type extends MessagePart['type']>(type: Type) {
  return (part: MessagePart): part is Extract<MessagePart, { type: Type }> => part.type === type
}

/** Half-streamed arguments are nothing a model can be shown. */
function isSendable(part: ToolCallPart): boolean {
  if (part.state === 'awaiting-input' || part.state === 'input-streaming') return false
  return !(part.state === 'cancelled' && part.error?.code === 'incomplete-arguments')
}

function unfoldReasoning(part: ReasoningPart): Message {
  return {
    id: part.id,
    role: 'reasoning',
    content: part.text,
    ...(part.encryptedValue !== undefined && { encryptedValue: part.encryptedValue }),
    ...(part.metadata && { metadata: part.metadata }),
  }
}

function unfoldCall(part: ToolCallPart): ToolCall {
  const { countersign: _, ...metadata } = part.metadata ?? {}
  const { encryptedValue, ...own } = ours(readCallMetadata(part.metadata).kept)
  const { token, ...approval } = part.approval ?? {}
  const unresolved = part.state === 'cancelled' || part.state === 'executing'
  const countersign = {
    ...own,
    ...(token !== undefined && { token }),
    ...(part.approval && { approval }),
    ...(unresolved && { state: part.state }),
    ...(part.state === 'cancelled' && part.error && { error: part.error }),
    ...(part.providerExecuted && { providerExecuted: true }),
  }
  const all = withOwn(metadata, countersign)
  return {
    id: part.id,
    type: 'function',
    function: { name: part.name, arguments: part.arguments },
    ...(typeof encryptedValue === 'string' && { encryptedValue }),
    ...(Object.keys(all).length > 0 && { metadata: all }),
  }
}

function unfoldResult(part: ToolResultPart): Message {
  return {
    id: part.id,
    role: 'tool',
    toolCallId: part.toolCallId,
    content: typeof part.content === 'string' ? part.content : part.content.filter(isContentPart),
    ...(part.error !== undefined && { error: part.error }),
    ...(part.metadata && { metadata: part.metadata }),
  }
}

function isContentPart(value: unknown): value is ContentPart {
  return isRecord(value) && typeof value.type === 'string'
}

function textOf(message: UIMessage): string {
  return message.parts
    .filter(isType('text'))
    .map((part) => part.text)
    .join('')
}

/** A single text is sent as text, anything else as content parts. */
function contentOf(message: UIMessage): string | ContentPart[] {
  const parts = message.parts.filter(
    (part): part is TextPart | FilePart => part.type === 'text' || part.type === 'file',
  )
  const [first] = parts
  if (parts.length === 1 && first?.type === 'text') return first.text
  return parts.map((part) => (part.type === 'text' ? { type: 'text', text: part.text } : unfoldFile(part)))
}

function unfoldFile(part: FilePart): ContentPart {
  return { type: part.media, source: part.source, ...(part.metadata && { metadata: part.metadata }) }
}

function subagentOf(message: UIMessage): { subagentRunId?: string } {
  const subagent = message.metadata?.subagent
  return isRecord(subagent) && typeof subagent.id === 'string' ? { subagentRunId: subagent.id } : {}
}

function metadataOf(
  message: UIMessage,
  order: readonly OrderStep[] | undefined,
): { metadata?: Record<string, unknown> } {
  const { countersign: _, ...metadata } = message.metadata ?? {}
  const { encryptedValue: __, order: ___, createdAt: ____, ...own } = ours(message.metadata)
  const countersign = {
    ...own,
    ...(order && { order }),
    ...(message.createdAt !== undefined && { createdAt: message.createdAt }),
  }
  const all = withOwn(metadata, countersign)
  return Object.keys(all).length > 0 ? { metadata: all } : {}
}

/** The order of a message's parts, where it is not the one a reader assumes anyway: reasoning, one text, calls, results. */
function contentOrder(message: UIMessage): readonly OrderStep[] | undefined {
  const rank = {
    reasoning: 0,
    text: 1,
    'tool-call': 2,
    'tool-result': 3,
    file: -1,
    source: -1,
    data: -1,
  } as const
  let before = -1
  let usual = true
  const order = message.parts.flatMap((part): OrderStep[] => {
    if (part.type === 'tool-call' && !isSendable(part)) return []
    const now = rank[part.type]
    usual &&= now > before || (now === before && now !== 1)
    if (part.type === 'text') usual &&= part.text !== ''
    if (now < 0) usual = false
    before = now
    return [orderStep(part)]
  })
  return usual ? undefined : order
}

function orderStep(part: MessagePart): OrderStep {
  switch (part.type) {
    case 'text':
      return part.text.length
    case 'reasoning':
      return 'r'
    case 'tool-call':
      return 'c'
    case 'tool-result':
      return 'o'
    case 'file':
    case 'source':
    case 'data':
      return part
    default:
      return part satisfies never
  }
}

function plainOrder(message: UIMessage): readonly OrderStep[] | undefined {
  const native = message.parts.every((part) => part.type === 'text' || part.type === 'file')
  if (native) return undefined
  return message.parts.map((part) => (part.type === 'text' || part.type === 'file' ? 'p' : orderStep(part)))
}
