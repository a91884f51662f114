import { type ContentPart, isRecord, type Message, type RunAgentInput } from '@countersign/core'

/** Features that the server does not support yet. */
export interface OlderThan {
  readonly subagents: boolean
  readonly reasoning: boolean
  readonly parts: boolean
}

/** Converts a request for servers of 0.x: they require `state`, `context` and `forwardedProps`, and may refuse unknown fields. */
export function olderInput(
  { protocolVersion: _, state = {}, context = [], forwardedProps = {}, messages, ...input }: RunAgentInput,
  olderThan: OlderThan,
  warn: (message: string) => void,
): RunAgentInput {
  return {
    ...input,
    state,
    context,
    forwardedProps,
    messages: messages.flatMap((message) => olderMessage(message, olderThan, warn)),
  }
}

function olderMessage(
  message: Message,
  { subagents, reasoning, parts }: OlderThan,
  warn: (message: string) => void,
): Message[] {
  if (message.role === 'reasoning' && reasoning) {
    warn(`The reasoning message ${message.id} is not sent: the server's version has none.`)
    return []
  }
  const { subagentRunId, ...rest } = message
  const sent: Message = subagents ? rest : message
  if (!parts || !('content' in sent) || !Array.isArray(sent.content)) return [sent]
  const texts = sent.content.flatMap((part: ContentPart) => (part.type === 'text' ? [part.text] : []))
  const lost = sent.content.length - texts.length
  if (lost > 0)
    warn(`${lost} part(s) of the message ${sent.id} are not sent: the server's version takes only text.`)
  return [{ ...sent, content: texts.join('\n') } as Message]
}

/**
 * Converts messages older than AG-UI 1.0: a `binary` content part becomes an image, audio, video or document;
 * everything else is unchanged. For stored histories: `initialMessages: fromAGUIMessages(upgradeMessages(stored))`.
 */
export function upgradeMessages(messages: readonly unknown[]): Message[] {
  // Invalid messages stay invalid: the consumer of the result validates it.
  return messages.map((message) =>
    isRecord(message) && Array.isArray(message.content)
      ? { ...message, content: message.content.map(upgradePart) }
      : message,
  ) as Message[]
}

const media = ['image', 'audio', 'video'] as const

function upgradePart(part: unknown): unknown {
  if (!isRecord(part) || part.type !== 'binary') return part
  const { mimeType, url, data, id, filename } = part
  const type = media.find((kind) => typeof mimeType === 'string' && mimeType.startsWith(`${kind}/`))
  const metadata = filename === undefined || filename === null ? {} : { metadata: { filename } }
  return { type: type ?? 'document', source: sourceOf({ mimeType, url, data, id }), ...metadata }
}

/** The source of a file: a URL if there is one, else the data, else the provider's id. */
function sourceOf({ mimeType, url, data, id }: Readonly<Record<string, unknown>>): unknown {
  if (typeof url === 'string') return { type: 'url', value: url, mimeType }
  return typeof data === 'string'
    ? { type: 'data', value: data, mimeType }
    : { type: 'file', value: id, mimeType }
}
