import {
  asString,
  CountersignError,
  type FilePart,
  isRecord,
  type MessagePart,
  omitUndefined,
  type SourcePart,
  type UIMessage,
} from '@countersign/core'
import {
  aiSdkMetadata,
  isNeeded,
  isOwnMessage,
  isWrapped,
  layoutOf,
  metadataWith,
  type StepMark,
} from './mark.js'
import {
  type AiSdkFile,
  type AiSdkMessage,
  type AiSdkPart,
  type AiSdkSource,
  isToolPart,
  stepsOf,
} from './message.js'
import { readToolPart } from './tool-part.js'

/**
 * Converts AI SDK messages to UI messages: each step of an assistant message becomes a separate message, as in AG-UI.
 * `toAiSdkMessages` converts them back. Answers in them are taken over as a record only; whether they count is up to the server.
 *
 * @throws CountersignError `invalid-argument` for messages without a list of parts, such as those of AI SDK 4.
 */
export function fromAiSdkMessages(messages: readonly AiSdkMessage[]): UIMessage[] {
  for (const [at, message] of messages.entries())
    if (!Array.isArray(message?.parts)) {
      const told = `Message ${at} has no list of \`parts\`, as AI SDK 5 and later have. Give each message of AI SDK 4 its content as parts first.`
      throw new CountersignError('invalid-argument', told, { at })
    }
  return messages.flatMap((message) =>
    message.role === 'assistant' ? fromAssistant(message) : [fromPlain(message)],
  )
}

function fromPlain({ id, role, parts, metadata }: AiSdkMessage): UIMessage {
  const layout = layoutOf(parts, (part) => plainPart(part).length === 0)
  const kept = isNeeded(layout) ? { layout } : {}
  return omitUndefined({
    id,
    role,
    parts: parts.flatMap((part) => plainPart(part)),
    metadata: metadataWith(metadata, kept),
  })
}

function plainPart(part: AiSdkPart): MessagePart[] {
  if (part.type === 'text') return [{ type: 'text', text: asString(part.text) ?? '' }]
  if (part.type === 'file') return [readFile(part)]
  const { type, ...content } = part
  return type.startsWith('data-') ? [{ type: 'data', name: type, data: content }] : []
}

function fromAssistant(message: AiSdkMessage): UIMessage[] {
  const steps = stepsOf(message)
  const hasStepZero = layoutOf(steps[0] ?? [], isOwnMessage).length > 0
  return steps.flatMap((parts, step) =>
    parts.length === 0 ? [] : readStep(message, parts, step, stepMessageId(message.id, step, hasStepZero)),
  )
}

/** The id of the message that a step becomes: the first that has one keeps that of the AI SDK's message. */
export function stepMessageId(id: string, step: number, hasStepZero: boolean): string {
  return step === 0 || (step === 1 && !hasStepZero) ? id : `${id}/${step}`
}

/** Every step carries the metadata, because any of them may be the last one that is sent back. */
function readStep(
  message: AiSdkMessage,
  parts: readonly AiSdkPart[],
  step: number,
  messageId: string,
): UIMessage[] {
  const { id } = message
  const made: MessagePart[] = []
  const results: MessagePart[] = []
  const others: UIMessage[] = []
  for (const [index, part] of parts.entries()) {
    if (isOwnMessage(part)) others.push(ownMessage({ id, step, messageId, index }, part, message.metadata))
    else if (isToolPart(part)) {
      const [call, result] = readToolPart(messageId, part)
      made.push(call)
      if (result) results.push(result)
    } else made.push(...assistantPart(messageId, index, part))
  }
  const layout = layoutOf(parts, isOwnMessage)
  const mark = { id, step, ...(isNeeded(layout) && { layout }) }
  const metadata = metadataWith(message.metadata, mark)
  const main = omitUndefined({
    id: messageId,
    role: 'assistant' as const,
    parts: [...made, ...results],
    metadata,
  })
  return layout.length === 0 ? others : [main, ...others]
}

function assistantPart(messageId: string, index: number, part: AiSdkPart): MessagePart[] {
  switch (part.type) {
    case 'text':
      // An empty text is kept only in the layout.
      return part.text === '' ? [] : [{ type: 'text', text: part.text }]
    case 'reasoning': {
      const { id, text, providerMetadata } = part
      const own = { countersign: { messageId }, ...aiSdkMetadata({ id, providerMetadata }) }
      return [{ type: 'reasoning', id: `${messageId}/r${index}`, text, metadata: own }]
    }
    case 'source-url':
    case 'source-document':
      return [readSource(part)]
    default:
      return []
  }
}

export function readSource(part: AiSdkSource): SourcePart {
  const { type, sourceId: id, url, title, mediaType, filename, providerMetadata } = part
  const metadata = aiSdkMetadata({ type, mediaType, filename, providerMetadata })
  return omitUndefined({ type: 'source' as const, id, url, title, metadata })
}

/** The position of a part that becomes a separate message. */
interface Place {
  readonly id: string
  readonly step: number
  readonly messageId: string
  readonly index: number
}

/** A part that AG-UI has no event for, in the form of an activity. */
export interface OwnMessage {
  readonly id: string
  readonly name: string
  readonly content: Record<string, unknown>
  readonly mark: StepMark
}

/**
 * Converts a part to a separate message: application data under its name, anything else under its type. Data
 * with an id may be sent again, even in a later step, so its message id is derived from that id.
 */
export function readOwnMessage({ id, step, messageId, index }: Place, part: AiSdkPart): OwnMessage {
  const { type, ...rest }: Record<string, unknown> & { type: string } = { ...part }
  const isData = type.startsWith('data-')
  const dataId = isData ? asString(rest.id) : undefined
  const content = isData ? rest.data : rest
  return {
    id: dataId === undefined ? `${step === 0 ? `${id}/0` : messageId}/p${index}` : `${id}/${type}/${dataId}`,
    name: isData ? type.slice('data-'.length) : type,
    content: isRecord(content) && !isWrapped(content) ? content : { value: content },
    mark: { id, step, part: omitUndefined({ index, type, id: dataId }) },
  }
}

function ownMessage(place: Place, part: AiSdkPart, shared: unknown): UIMessage {
  const { id, name, content: data, mark } = readOwnMessage(place, part)
  return omitUndefined({
    id,
    role: 'assistant' as const,
    parts: [{ type: 'data' as const, name, data }],
    metadata: metadataWith(shared, mark),
  })
}

const media = ['image', 'audio', 'video'] as const

function readFile({ type: _, mediaType, url, providerReference, ...own }: AiSdkFile): FilePart {
  const [top] = mediaType.split('/')
  const metadata = aiSdkMetadata(own)
  return {
    type: 'file',
    media: media.find((one) => one === top) ?? 'document',
    source: fileSource(mediaType, url, providerReference),
    ...(metadata && { metadata }),
  }
}

const dataUrl = /^data:([^,]*?);base64,(.*)$/s

function fileSource(
  mimeType: string,
  url: string,
  reference: AiSdkFile['providerReference'],
): FilePart['source'] {
  const [named] = Object.entries(reference ?? {})
  if (named) return { type: 'file', value: named[1], mimeType, provider: named[0] }
  const [, , value] = dataUrl.exec(url) ?? []
  return value === undefined ? { type: 'url', value: url, mimeType } : { type: 'data', value, mimeType }
}
