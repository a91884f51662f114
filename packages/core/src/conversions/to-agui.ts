import type { OrderStep } from '../machine/fold.js'
import { preservedOf, withoutPreserved } from '../machine/preserved.js'
import { subagentIdOf } from '../machine/subagents.js'
import type {
  DataPart,
  FilePart,
  MessagePart,
  ReasoningPart,
  ToolCallPart,
  ToolResultPart,
  UIMessage,
} from '../messages.js'
import type { ContentPart, Message, ToolCall } from '../protocol/events.js'
import {
  asString,
  getCountersignMetadata,
  isRecord,
  omitUndefined,
  oneOf,
  readCallMetadata,
  setCountersignMetadata,
} from '../value.js'

/**
 * Converts the conversation to AG-UI messages, to be stored or sent. `fromAGUIMessages` restores the same UI messages: the order of
 * parts, approval requests and answers travel in `metadata.countersign`. Calls with incomplete arguments are left out. A message that
 * is one data part becomes an activity, which AG-UI 1.0 keeps on the client: remove messages with the role `activity` from a request.
 */
export function toAGUIMessages(messages: readonly UIMessage[]): Message[] {
  return messages.flatMap((message) => {
    if (message.role === 'assistant') return unfoldAssistant(message)
    const { id, role } = message
    const own = getCountersignMetadata(message.metadata)
    const name = asString(own.name)
    const subagentRunId = subagentIdOf(message.metadata)
    return role === 'user'
      ? omitUndefined({
          id,
          role,
          name,
          ...preservedOf(own),
          subagentRunId,
          content: contentOf(message),
          metadata: metadataOf(message, plainOrder(message)),
        })
      : omitUndefined({
          id,
          role: oneOf(own.role, 'developer') ?? role,
          name,
          ...preservedOf(own),
          subagentRunId,
          content: textOf(message),
          metadata: metadataOf(message, contentOrder(message)),
        })
  })
}

function unfoldAssistant(message: UIMessage): Message[] {
  const { id, parts, metadata } = message
  const [first] = parts
  const subagentRunId = subagentIdOf(metadata)
  const thoughts = parts.filter(isType('reasoning')).map((part) => unfoldReasoning(part, subagentRunId))
  const bare = unfoldBare(message)
  if (bare) return bare
  if (first?.type === 'data' && parts.length === 1) return [unfoldActivity(message, first, subagentRunId)]
  const all = parts.filter(isType('tool-call'))
  const calls = all.filter(isSendable)
  const kept = new Set(calls.map((call) => call.id))
  const dropped = new Set(all.flatMap((call) => (kept.has(call.id) ? [] : [call.id])))
  const results = parts.filter(isType('tool-result')).filter((part) => !dropped.has(part.toolCallId))
  const content = textOf(message)
  return [
    ...thoughts,
    omitUndefined({
      id,
      role: 'assistant' as const,
      content: content === '' && calls.length > 0 ? undefined : content,
      toolCalls: calls.length > 0 ? calls.map(unfoldCall) : undefined,
      name: asString(getCountersignMetadata(metadata).name),
      ...preservedOf(getCountersignMetadata(metadata)),
      subagentRunId,
      metadata: metadataOf(message, contentOrder(message)),
    }),
    ...results.map((result) => omitUndefined({ ...unfoldResult(result), subagentRunId })),
  ]
}

/** The content of an activity must be an object; anything else is wrapped in one. */
function unfoldActivity(
  message: UIMessage,
  { name: activityType, data }: DataPart,
  subagentRunId: string | undefined,
): Message {
  const metadata = metadataOf(message, undefined)
  const isWrapped = !isRecord(data)
  return omitUndefined({
    id: message.id,
    role: 'activity' as const,
    activityType,
    content: isWrapped ? { value: data } : data,
    subagentRunId,
    metadata: isWrapped
      ? setCountersignMetadata(metadata, { ...getCountersignMetadata(metadata), isWrapped })
      : metadata,
  })
}

function isType<Type extends MessagePart['type']>(type: Type) {
  return (part: MessagePart): part is Extract<MessagePart, { type: Type }> => part.type === type
}

/** A model must not be sent half-streamed arguments. */
export function isSendable({ state, error }: ToolCallPart): boolean {
  if (state === 'awaiting-input' || state === 'input-streaming') return false
  return !(state === 'cancelled' && error?.code === 'incomplete-arguments')
}

function unfoldReasoning(part: ReasoningPart, subagentRunId: string | undefined) {
  const { id, text: content, encryptedValue } = part
  return omitUndefined({
    id,
    role: 'reasoning' as const,
    content,
    ...preservedOf(getCountersignMetadata(part.metadata)),
    encryptedValue,
    subagentRunId,
    metadata: withoutPreserved(part.metadata),
  })
}

/** Reasoning without a message after it, the agent's or a subagent's, is sent as it was received. */
function unfoldBare({ id, parts, metadata, createdAt }: UIMessage): Message[] | undefined {
  const thoughts = parts.filter(isType('reasoning'))
  if (thoughts[0]?.id !== id || thoughts.length < parts.length || createdAt) return undefined
  const subagentRunId = subagentIdOf(metadata)
  const { subagent, ...more } = metadata ?? {}
  if (Object.keys(more).length > 0 || (metadata && subagentRunId === undefined)) return undefined
  return thoughts.map((part) => {
    const bare = unfoldReasoning(part, subagentRunId)
    return metadata ? { ...bare, metadata: { ...bare.metadata, subagent } } : bare
  })
}

function unfoldCall(part: ToolCallPart): ToolCall {
  const { id, name, arguments: text, state, error, providerExecuted, metadata, approval } = part
  const own = getCountersignMetadata(readCallMetadata(metadata).kept)
  const ended = omitUndefined({
    token: approval?.token,
    approval:
      approval?.token === undefined
        ? approval
        : omitUndefined(Object.assign({}, approval, { token: undefined })),
    state: oneOf(state, 'cancelled', 'executing'),
    error: state === 'cancelled' ? error : undefined,
    providerExecuted,
  })
  return omitUndefined({
    id,
    type: 'function' as const,
    function: { name, arguments: text },
    ...preservedOf(own),
    metadata: withoutPreserved(setCountersignMetadata(metadata, Object.assign({ ...own }, ended))),
  })
}

function unfoldResult({ id, toolCallId, content, error, metadata }: ToolResultPart): Message {
  return omitUndefined({
    id,
    role: 'tool' as const,
    toolCallId,
    content: typeof content === 'string' ? content : content.filter(isContentPart),
    error,
    ...preservedOf(getCountersignMetadata(metadata)),
    metadata: withoutPreserved(metadata),
  })
}

function isContentPart(value: unknown): value is ContentPart {
  return isRecord(value) && typeof value.type === 'string'
}

function textOf({ parts }: UIMessage): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

/** A single text is sent as a string, unless it came as a list or has an id or metadata; anything else is sent as content parts. */
function contentOf({ parts, metadata }: UIMessage): string | ContentPart[] {
  const content = parts.flatMap((part): ContentPart[] => {
    if (part.type === 'text') return [{ ...part }]
    return part.type === 'file' ? [unfoldFile(part)] : []
  })
  const [first] = content
  const isBare = first?.type === 'text' && first.id === undefined && !first.metadata
  return content.length === 1 && isBare && !getCountersignMetadata(metadata).list ? first.text : content
}

function unfoldFile({ media: type, source, id, metadata }: FilePart): ContentPart {
  return omitUndefined({ type, id, source, metadata })
}

/** The metadata of a message, plus the fields that AG-UI does not have. */
function metadataOf(message: UIMessage, order: readonly OrderStep[] | undefined) {
  const { order: _, createdAt: __, name, role, list, ...own } = getCountersignMetadata(message.metadata)
  return withoutPreserved(
    setCountersignMetadata(message.metadata, {
      ...own,
      ...omitUndefined({ order, createdAt: message.createdAt }),
    }),
  )
}

/** The order of parts that a reader assumes by default: reasoning, one text, calls, results. */
const usual: readonly MessagePart['type'][] = ['reasoning', 'text', 'tool-call', 'tool-result']

/** The order of a message's parts, unless it is the default one. */
function contentOrder({ parts }: UIMessage): readonly OrderStep[] | undefined {
  const sent = parts.filter((part) => part.type !== 'tool-call' || isSendable(part))
  const isUsual = sent.every((part, i) => {
    const before = sent[i - 1]
    if (usual.indexOf(part.type) < (before ? usual.indexOf(before.type) : 0)) return false
    return part.type !== 'text' || (part.text !== '' && before?.type !== 'text')
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
