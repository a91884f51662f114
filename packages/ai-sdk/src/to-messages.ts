import {
  type FilePart,
  isRecord,
  type MessagePart,
  omitUndefined,
  type ReasoningPart,
  type SourcePart,
  type ToolCallPart,
  type ToolResultPart,
  type UIMessage,
} from '@countersign/core'
import { aiSdkOf, isWrapped, type LayoutItem, ownMetadataOf, readMark, type StepMark } from './mark.js'
import type { AiSdkFile, AiSdkMessage, AiSdkPart, AiSdkReasoning, AiSdkSource } from './message.js'
import { writeToolPart } from './tool-part.js'

/**
 * Converts the conversation to what AI SDK routes accept. The steps of one AI SDK message are joined again, with all of
 * their SDK metadata; an answer is part of its call. See {@link writeToolPart} for what such a server could not accept.
 */
export function toAiSdkMessages(messages: readonly UIMessage[]): AiSdkMessage[] {
  const lastSpoken = messages.findLastIndex(({ role }) => role === 'user')
  const drafts: Draft[] = []
  for (const [index, message] of messages.entries()) {
    if (message.role !== 'assistant') {
      drafts.push({ kind: 'plain', message })
      continue
    }
    const mark = readMark(message.metadata) ?? { id: message.id, step: 1 }
    const last = drafts.at(-1)
    const draft = last?.kind === 'steps' && last.id === mark.id ? last : newDraft(mark.id)
    if (draft !== last) drafts.push(draft)
    addStep(draft, message, mark, index < lastSpoken)
  }
  return drafts.map((draft) => (draft.kind === 'steps' ? joinSteps(draft) : toPlain(draft.message)))
}

/** An AI SDK message whose steps are being collected. */
interface StepsDraft {
  readonly kind: 'steps'
  readonly id: string
  readonly steps: AiSdkPart[][]
  readonly inserts: { readonly step: number; readonly index: number; readonly part: AiSdkPart }[]
  metadata: unknown
}

type Draft = StepsDraft | { readonly kind: 'plain'; readonly message: UIMessage }

function newDraft(id: string): StepsDraft {
  return { kind: 'steps', id, steps: [], inserts: [], metadata: undefined }
}

/** More steps than any run has; a history with a larger step number must not make us create that many. */
const MAX_STEPS = 10_000

function addStep(
  draft: StepsDraft,
  message: UIMessage,
  { step: named, layout, part }: StepMark,
  isPast: boolean,
): void {
  const step = Math.min(Math.max(named, 0), MAX_STEPS)
  while (draft.steps.length <= step) draft.steps.push([])
  const { metadata: before } = draft
  const after = ownMetadataOf(message.metadata)
  draft.metadata = isRecord(before) && isRecord(after) ? { ...before, ...after } : (after ?? before)
  const own = part && writeOwnPart(message, part)
  if (part && own) {
    draft.inserts.push({ step, index: part.index, part: own })
    return
  }
  draft.steps[step]?.push(...writeParts(message, layout, isPast))
}

function joinSteps({ id, steps, inserts, metadata }: StepsDraft): AiSdkMessage {
  for (const { step, index, part } of inserts) steps[step]?.splice(index, 0, part)
  const parts = steps.flatMap((step, n) => (n === 0 ? step : [{ type: 'step-start' as const }, ...step]))
  return { id, role: 'assistant', parts, ...(metadata !== undefined && { metadata }) }
}

function toPlain({ id, role, parts, metadata }: UIMessage): AiSdkMessage {
  const { layout } = aiSdkOf(metadata)
  const own = ownMetadataOf(metadata)
  const items = Array.isArray(layout) ? (layout as LayoutItem[]) : undefined
  const written =
    arrange(textOf(parts), parts.flatMap(writePlainPart), items) ??
    parts.flatMap(writeInOrder(writePlainPart))
  return { id, role, parts: written, ...(own !== undefined && { metadata: own }) }
}

function textOf(parts: readonly MessagePart[]): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

function writeInOrder(write: (part: MessagePart) => AiSdkPart[]) {
  return (part: MessagePart): AiSdkPart[] =>
    part.type === 'text' ? [{ type: 'text', text: part.text }] : write(part)
}

function writePlainPart(part: MessagePart): AiSdkPart[] {
  if (part.type === 'file') return [writeFile(part)]
  if (part.type !== 'data') return []
  const { name, data } = part
  // A part from the AI SDK is kept complete under its own type.
  return [
    name.startsWith('data-') && isRecord(data)
      ? { ...data, type: dataType(name) }
      : { type: dataType(name), data },
  ]
}

function dataType(name: string): `data-${string}` {
  return `data-${name.replace(/^data-/, '')}`
}

function writeParts({ parts }: UIMessage, layout: StepMark['layout'], isPast: boolean): AiSdkPart[] {
  const results = resultsOf(parts)
  const write = (part: MessagePart): AiSdkPart[] => writeAssistantPart(part, results, isPast)
  const isWhole = parts.every((part) => part.type !== 'tool-call' || write(part).length > 0)
  const arranged = isWhole ? arrange(textOf(parts), parts.flatMap(write), layout) : undefined
  const done = (part: AiSdkPart): AiSdkPart => (part.type === 'text' ? { ...part, state: 'done' } : part)
  return (arranged ?? parts.flatMap(writeInOrder(write))).map(done)
}

/** Maps each call to its result. A result belongs to the nearest earlier call with its id that has none yet. */
function resultsOf(parts: readonly MessagePart[]): ReadonlyMap<MessagePart, ToolResultPart> {
  const results = new Map<MessagePart, ToolResultPart>()
  const open = new Map<string, MessagePart[]>()
  for (const part of parts) {
    if (part.type === 'tool-call' && !open.get(part.id)?.push(part)) open.set(part.id, [part])
    const call = part.type === 'tool-result' && open.get(part.toolCallId)?.pop()
    if (call && part.type === 'tool-result') results.set(call, part)
  }
  return results
}

/** Splits the text as in the layout, with the other parts in between; `undefined` if the layout does not fit these parts. */
function arrange(
  text: string,
  others: readonly AiSdkPart[],
  layout: readonly LayoutItem[] | undefined,
): AiSdkPart[] | undefined {
  if (layout === undefined) return undefined
  const rest = others.values()
  let at = 0
  const arranged = layout.flatMap((item): AiSdkPart[] => {
    if (item === 'part') {
      const next = rest.next()
      return next.done ? [] : [next.value]
    }
    const { text: length, ...more } = item
    const from = at
    at += length
    return [{ type: 'text', text: text.slice(from, at), ...more }]
  })
  return at === text.length && arranged.length === layout.length && rest.next().done ? arranged : undefined
}

/** Converts every part but text. */
function writeAssistantPart(
  part: MessagePart,
  results: ReadonlyMap<MessagePart, ToolResultPart>,
  isPast: boolean,
): AiSdkPart[] {
  switch (part.type) {
    case 'reasoning':
      return [writeReasoning(part)]
    case 'tool-call': {
      const written = writeToolPart(part as ToolCallPart, results.get(part), isPast)
      return written ? [written] : []
    }
    case 'source':
      return [writeSource(part)]
    case 'file':
      return [writeFile(part)]
    case 'data':
      return [{ type: dataType(part.name), data: part.data }]
    case 'text':
    case 'tool-result':
      return []
    default:
      return part satisfies never
  }
}

function writeReasoning({ text, metadata }: ReasoningPart): AiSdkReasoning {
  return { type: 'reasoning', text, state: 'done', ...aiSdkOf(metadata) }
}

function writeSource({ id, url, title, metadata }: SourcePart): AiSdkSource {
  const { type, ...own } = aiSdkOf(metadata)
  return {
    type: type === 'source-document' ? type : 'source-url',
    sourceId: id,
    ...omitUndefined({ url, title }),
    ...own,
  }
}

/** Restores a part that became a separate message. If the application replaced its content, it is no longer such a part. */
function writeOwnPart(
  { parts }: UIMessage,
  { type, id }: NonNullable<StepMark['part']>,
): AiSdkPart | undefined {
  const [part] = parts
  if (part?.type !== 'data') return undefined
  const { data } = part
  if (!type.startsWith('data-')) return isRecord(data) ? ({ ...data, type } as AiSdkPart) : undefined
  return { type: dataType(type), data: isWrapped(data) ? data.value : data, ...omitUndefined({ id }) }
}

const anyOf = {
  image: 'image',
  audio: 'audio',
  video: 'video',
  document: 'application/octet-stream',
} as const

function writeFile({ media, source, metadata }: FilePart): AiSdkFile {
  const { mimeType: mediaType = anyOf[media] } = source
  const file = { type: 'file', mediaType, ...aiSdkOf(metadata) } as const
  switch (source.type) {
    case 'data':
      return { ...file, url: `data:${source.mimeType};base64,${source.value}` }
    case 'url':
      return { ...file, url: source.value }
    case 'file':
      return { ...file, url: '', providerReference: { [source.provider ?? 'default']: source.value } }
    default:
      return source satisfies never
  }
}
