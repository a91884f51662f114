import type { OrderStep } from '../machine/fold.js'
import { isRecord, known, oneOf, ours, readCallMetadata, string, withOwn } from '../machine/value.js'
import type {
  FilePart,
  MessagePart,
  ReasoningPart,
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
    const { id, role } = message
    const own = ours(message.metadata)
    const name = string(own.name)
    return role === 'user'
      ? known({
          id,
          role,
          name,
          content: contentOf(message),
          metadata: metadataOf(message, plainOrder(message)),
        })
      : known({
          id,
          role: oneOf(own.role, 'developer') ?? role,
          name,
          content: textOf(message),
          metadata: metadataOf(message, contentOrder(message)),
        })
  })
}

function unfoldAssistant(message: UIMessage): Message[] {
  const { id, parts, metadata } = message
  const [first] = parts
  const thoughts = parts.filter(isType('reasoning')).map(unfoldReasoning)
  // Thoughts that no message followed.
  if (first?.type === 'reasoning' && first.id === id && parts.length === 1 && !metadata && !message.createdAt)
    return thoughts
  // AG-UI 1.0: a client keeps activities to itself.
  if (first?.type === 'data' && parts.length === 1) return []
  const all = parts.filter(isType('tool-call'))
  const calls = all.filter(isSendable)
  const kept = new Set(calls.map((call) => call.id))
  const dropped = new Set(all.flatMap((call) => (kept.has(call.id) ? [] : [call.id])))
  const results = parts.filter(isType('tool-result')).filter((part) => !dropped.has(part.toolCallId))
  const content = textOf(message)
  const { subagent } = metadata ?? {}
  const subagentRunId = isRecord(subagent) ? string(subagent.id) : undefined
  return [
    ...thoughts,
    known({
      id,
      role: 'assistant' as const,
      content: content === '' && calls.length > 0 ? undefined : content,
      toolCalls: calls.length > 0 ? calls.map(unfoldCall) : undefined,
      name: string(ours(metadata).name),
      encryptedValue: string(ours(metadata).encryptedValue),
      subagentRunId,
      metadata: metadataOf(message, contentOrder(message)),
    }),
    ...results.map((result) => known({ ...unfoldResult(result), subagentRunId })),
  ]
}

function isType<Type extends MessagePart['type']>(type: Type) {
  return (part: MessagePart): part is Extract<MessagePart, { type: Type }> => part.type === type
}

/** Half-streamed arguments are nothing a model can be shown. */
export function isSendable({ state, error }: ToolCallPart): boolean {
  if (state === 'awaiting-input' || state === 'input-streaming') return false
  return !(state === 'cancelled' && error?.code === 'incomplete-arguments')
}

function unfoldReasoning({ id, text: content, encryptedValue, metadata }: ReasoningPart): Message {
  return known({ id, role: 'reasoning' as const, content, encryptedValue, metadata })
}

function unfoldCall({
  id,
  name,
  arguments: text,
  state,
  error,
  providerExecuted,
  ...part
}: ToolCallPart): ToolCall {
  const { encryptedValue, ...own } = ours(readCallMetadata(part.metadata).kept)
  const { token, ...approval } = part.approval ?? {}
  const ended = known({
    token,
    approval: part.approval && approval,
    state: oneOf(state, 'cancelled', 'executing'),
    error: state === 'cancelled' ? error : undefined,
    providerExecuted,
  })
  return known({
    id,
    type: 'function' as const,
    function: { name, arguments: text },
    encryptedValue: string(encryptedValue),
    metadata: withOwn(part.metadata, { ...own, ...ended }),
  })
}

function unfoldResult({ id, toolCallId, content, error, metadata }: ToolResultPart): Message {
  const sent = typeof content === 'string' ? content : content.filter(isContentPart)
  return known({ id, role: 'tool' as const, toolCallId, content: sent, error, metadata })
}

function isContentPart(value: unknown): value is ContentPart {
  return isRecord(value) && typeof value.type === 'string'
}

function textOf({ parts }: UIMessage): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

/** A single text is sent as text, anything else as content parts. */
function contentOf({ parts }: UIMessage): string | ContentPart[] {
  const content = parts.flatMap((part): ContentPart[] => {
    if (part.type === 'text') return [{ type: 'text', text: part.text }]
    return part.type === 'file' ? [unfoldFile(part)] : []
  })
  const [first] = content
  return content.length === 1 && first?.type === 'text' ? first.text : content
}

function unfoldFile({ media: type, source, metadata }: FilePart): ContentPart {
  return known({ type, source, metadata })
}

/** The metadata of a message, with what AG-UI has no place for. */
function metadataOf(message: UIMessage, order: readonly OrderStep[] | undefined) {
  const { encryptedValue, order: _, createdAt: __, name, role, ...own } = ours(message.metadata)
  return withOwn(message.metadata, { ...own, ...known({ order, createdAt: message.createdAt }) })
}

/** What a reader assumes of the order of parts: reasoning, one text, calls, results. */
const usual: readonly MessagePart['type'][] = ['reasoning', 'text', 'tool-call', 'tool-result']

/** The order of a message's parts, where it is not the one a reader assumes anyway. */
function contentOrder({ parts }: UIMessage): readonly OrderStep[] | undefined {
  const sent = parts.filter((part) => part.type !== 'tool-call' || isSendable(part))
  const isUsual = sent.every((part, i) => {
    const [before, now] = [sent[i - 1], part].map((at) => (at ? usual.indexOf(at.type) : 0))
    if (now === undefined || before === undefined || now < before) return false
    return part.type !== 'text' || (part.text !== '' && sent[i - 1]?.type !== 'text')
  })
  return isUsual ? undefined : sent.map(orderStep)
}

function plainOrder({ parts }: UIMessage): readonly OrderStep[] | undefined {
  const isPlain = (part: MessagePart) => part.type === 'text' || part.type === 'file'
  return parts.every(isPlain) ? undefined : parts.map((part) => (isPlain(part) ? 'p' : orderStep(part)))
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
