import { type AGUIEvent, isRecord, omitUndefined } from '@countersign/core'
import { field, type RawChunk, unknownId } from './fields.js'
import { readOwnMessage, readSource, stepMessageId } from './from-messages.js'
import {
  aiSdkMetadata,
  isNeeded,
  isOwnMessage,
  type LayoutItem,
  layoutOf,
  metadataWith,
  type TextItem,
} from './mark.js'
import type { AiSdkMessage, AiSdkPart, AiSdkSource } from './message.js'
import { stepsOf } from './message.js'

/** One step in progress: an AG-UI message that stays open until the next one, because its parts arrive in any order. */
interface Step {
  readonly messageId: string
  readonly number: number
  readonly layout: LayoutItem[]
  /** How many of its parts became separate messages. */
  others: number
  /** The first message that it became. */
  first: string | undefined
  /** Its sources and data that had not been there before. */
  readonly added: string[]
  /** Its texts that have not been sent whole. The first is streamed and the others wait, because a message has one text. */
  readonly queue: Text[]
  /** A text continued after a later part had started. */
  isMixed: boolean
  isOpen: boolean
}

interface Text {
  readonly step: Step
  readonly item: TextItem
  readonly place: number
  waiting: string
  isDone: boolean
}

interface Reasoning {
  readonly messageId: string
  readonly own: { id: string; providerMetadata: unknown }
}

export type StepReader = ReturnType<typeof createStepReader>

/** Converts everything in an AI SDK message but its calls to events. `continued` is the message that the stream continues. */
export function createStepReader(
  emit: (event: AGUIEvent) => void,
  newId: string,
  continued: AiSdkMessage | undefined,
) {
  let id = continued?.id ?? newId
  let metadata: unknown = continued?.metadata
  let hasUnsentMetadata = false
  /**
   * How many members those objects of it have that no reader can have seen. They are changed in place: a copy for each chunk would take
   * quadratic time.
   */
  let owned: Sizes = new WeakMap()
  /** Open steps whose metadata has changed since it was sent. */
  const changed = new Set<Step>()
  /** How many parts of layouts may be sent again: a stream that changes a long one with each chunk would take quadratic time. */
  let credit = 0
  const before = continued ? stepsOf(continued) : []
  let number = Math.max(before.length - 1, 0)
  let step: Step | undefined
  /** Earlier steps with a text that is open: of two streams that were merged, one goes on when a step of the other ends. */
  const goingOn = new Set<Step>()
  /** Those of them whose text nothing has interrupted yet. */
  const whole = new Set<Step>()
  /** Whether there is something before the first `step-start`. */
  let hasStepZero = layoutOf(before[0] ?? [], isOwnMessage).length > 0
  const texts = new Map<string, Text>()
  const reasonings = new Map<string, Reasoning>()
  /** The sources, and the data with an id, of the whole message. */
  const known = new Set<string>()
  for (const part of continued?.parts ?? []) {
    if (part.type === 'source-url' || part.type === 'source-document')
      known.add((part as AiSdkSource).sourceId)
    if (part.type.startsWith('data-') && 'id' in part) known.add(`${part.type}/${part.id}`)
  }

  /** Whether it is the first with this key. */
  function isNew(key: string): boolean {
    if (known.has(key)) return false
    known.add(key)
    current().added.push(key)
    return true
  }

  function current(): Step {
    const found = (number === before.length - 1 && before[number]) || []
    step ??= {
      messageId: stepMessageId(id, number, hasStepZero),
      number,
      layout: layoutOf(found, isOwnMessage),
      others: found.filter(isOwnMessage).length,
      first: found.length > 0 ? stepMessageId(id, number, hasStepZero) : undefined,
      added: [],
      queue: [],
      isMixed: false,
      isOpen: false,
    }
    return step
  }

  function markOf({ layout, isMixed, number: step }: Step) {
    return omitUndefined({
      id,
      step,
      layout: isMixed || isNeeded(layout) ? [...layout] : undefined,
    })
  }

  /** The step, with its message opened. */
  function open(): Step {
    const opened = current()
    if (opened.isOpen) return opened
    opened.isOpen = true
    opened.first ??= opened.messageId
    const described = metadataOf(opened)
    emit({
      type: 'TEXT_MESSAGE_START',
      messageId: opened.messageId,
      role: 'assistant',
      ...(described && { metadata: described }),
    })
    return opened
  }

  function say(text: Text, delta: string): void {
    const { step: owner, item } = text
    item.text += delta.length
    if (owner.layout.length > text.place + 1) owner.isMixed = true
    emit({ type: 'TEXT_MESSAGE_CONTENT', messageId: owner.messageId, delta })
  }

  /** The metadata to send with a step. */
  function metadataOf(owner: Step): Record<string, unknown> | undefined {
    changed.delete(owner)
    if (owner === step) hasUnsentMetadata = false
    owned = new WeakMap()
    return metadataWith(metadata, markOf(owner))
  }

  /** Sends the metadata of an open message again, if it has changed. */
  function describe(owner: Step): void {
    if (!changed.has(owner)) return
    const { messageId } = owner
    const described = metadataOf(owner)
    if (described) emit({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta: '', metadata: described })
  }

  /** Streams texts that waited for others to end. */
  function advance({ queue }: Step): void {
    while (queue[0]?.isDone) {
      queue.shift()
      const [next] = queue
      if (!next || next.waiting === '') continue
      say(next, next.waiting)
      next.waiting = ''
    }
  }

  /** Ends everything that is open. */
  function close(): void {
    texts.clear()
    for (const reasoning of reasonings.keys()) endReasoning(reasoning)
    for (const owner of goingOn) endStep(owner)
    if (step) endStep(step)
    step = undefined
  }

  function endStep(owner: Step): void {
    goingOn.delete(owner)
    whole.delete(owner)
    for (const text of owner.queue) text.isDone = true
    advance(owner)
    if (!owner.isOpen) return
    describe(owner)
    const metadata = { ...aiSdkMetadata(markOf(owner)) }
    emit({ type: 'TEXT_MESSAGE_END', messageId: owner.messageId, metadata })
  }

  function endReasoning(key: string): void {
    const reasoning = reasonings.get(key)
    if (!reasoning) return
    reasonings.delete(key)
    const { messageId, own } = reasoning
    const said = aiSdkMetadata(own)
    emit({ type: 'REASONING_MESSAGE_END', messageId, ...(said && { metadata: { ...said } }) })
    emit({ type: 'REASONING_END', messageId })
  }

  /** The part that a delta or an end belongs to. As in the SDK, the last metadata wins. */
  function begun<T>(
    chunk: RawChunk,
    parts: ReadonlyMap<string, T>,
    own: (part: T) => { providerMetadata?: unknown },
  ): T {
    const part = parts.get(field(chunk, 'id'))
    if (!part) throw unknownId(chunk, field(chunk, 'id'))
    if (chunk.providerMetadata !== undefined) own(part).providerMetadata = chunk.providerMetadata
    return part
  }

  function readText(chunk: RawChunk): void {
    if (chunk.type === 'text-start') {
      const owner = open()
      const item: TextItem = { text: 0, ...omitUndefined({ providerMetadata: chunk.providerMetadata }) }
      const text = { step: owner, item, place: owner.layout.push(item) - 1, waiting: '', isDone: false }
      texts.set(field(chunk, 'id'), text)
      owner.queue.push(text)
      return
    }
    const text = begun(chunk, texts, (found) => found.item)
    if (chunk.type === 'text-delta') {
      const delta = field(chunk, 'delta')
      if (text === text.step.queue[0]) say(text, delta)
      else text.waiting += delta
      return
    }
    if (chunk.citations !== undefined) text.item.citations = chunk.citations
    texts.delete(field(chunk, 'id'))
    text.isDone = true
    const { step: owner } = text
    advance(owner)
    if (goingOn.has(owner) && owner.queue.length === 0) endStep(owner)
    // Sent before the step ends, because a page that stops in the middle of it must keep this text's metadata.
    else if (Object.keys(text.item).length > 1) changed.add(owner)
  }

  function readReasoning(chunk: RawChunk): void {
    const key = field(chunk, 'id')
    if (chunk.type === 'reasoning-start') {
      const { messageId: owner, layout } = open()
      layout.push('part')
      const messageId = `${owner}/r${layout.length - 1 + current().others}`
      const own = { id: key, providerMetadata: chunk.providerMetadata }
      reasonings.set(key, { messageId, own })
      emit({ type: 'REASONING_START', messageId })
      const said = { countersign: { messageId: owner }, ...aiSdkMetadata(own) }
      emit({ type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning', metadata: said })
      return
    }
    const { messageId } = begun(chunk, reasonings, (found) => found.own)
    if (chunk.type === 'reasoning-end') endReasoning(key)
    else emit({ type: 'REASONING_MESSAGE_CONTENT', messageId, delta: field(chunk, 'delta') })
  }

  function takeSource(chunk: RawChunk): void {
    const part: AiSdkSource = {
      ...chunk,
      type: chunk.type as AiSdkSource['type'],
      sourceId: field(chunk, 'sourceId'),
    }
    if (!isNew(part.sourceId)) return
    const { messageId, layout } = open()
    layout.push('part')
    const { type: _, ...value } = readSource(part)
    emit({ type: 'CUSTOM', name: 'source', value: { messageId, ...value } })
  }

  /** Data that does not stay in the message. Our own server says in it that an answer was refused. */
  function takePassing({ type: name, ...value }: RawChunk): void {
    if (name === 'data-approval-refused')
      emit({ type: 'CUSTOM', name: 'approval-refused', value: value.data })
    else emit({ type: 'CUSTOM', name, value })
  }

  /** Handles parts that AG-UI has no event for. */
  function takeOther({ transient, ...chunk }: RawChunk): void {
    if (transient === true) {
      takePassing(chunk)
      return
    }
    const here = current()
    const index = here.layout.length + current().others
    const part = readOwnMessage({ id, step: number, messageId: here.messageId, index }, chunk as AiSdkPart)
    const key = typeof chunk.id === 'string' ? `${chunk.type}/${chunk.id}` : undefined
    // Data that is sent again keeps its place.
    const isKnown = key !== undefined && !isNew(key)
    if (!isKnown) {
      here.others++
      here.first ??= part.id
    }
    emit({
      type: 'ACTIVITY_SNAPSHOT',
      messageId: part.id,
      activityType: part.name,
      content: part.content,
      replace: true,
      ...(!isKnown && { metadata: { ...aiSdkMetadata({ ...part.mark }) } }),
    })
  }

  return {
    /** A continued message keeps its id: a server that names another one was not told about it. */
    begin(named: unknown): void {
      if (continued === undefined && typeof named === 'string' && named !== '' && step === undefined)
        id = named
    },
    beginStep(): void {
      if (step && step.queue.length > 0) {
        goingOn.add(step)
        whole.add(step)
      } else if (step) endStep(step)
      if (number === 0 && step) hasStepZero = step.layout.length > 0
      step = undefined
      number++
    },
    /** Its messages are dropped, and what follows takes its place. */
    resetStep(): void {
      if (!step) return
      const { first: messageId, added } = step
      close()
      for (const key of added) known.delete(key)
      hasUnsentMetadata = metadata !== undefined
      emit({ type: 'CUSTOM', name: 'messages-dropped', value: { messageId } })
    },
    /** Adds a part that is not text to the layout; returns the id of its message. */
    place(): string {
      const { messageId, layout } = open()
      layout.push('part')
      return messageId
    },
    get number() {
      return number
    },
    /** A result follows: an open text will continue after it. */
    interrupt(): void {
      if (step && step.queue.length > 0) step.isMixed = true
      for (const owner of whole) owner.isMixed = true
      whole.clear()
    },
    readText,
    readReasoning,
    takeSource,
    takeOther,
    addMetadata(value: unknown): void {
      if (value === undefined || value === null) return
      metadata = merge(metadata, value, owned)
      if (step?.isOpen) changed.add(step)
      else hasUnsentMetadata = true
    },
    /** A chunk was read: sends what has changed since, unless `hasMore` or its metadata is too long for that few chunks. */
    describe(hasMore: boolean): void {
      credit += CREDIT
      if (hasMore) return
      for (const owner of changed) {
        const { length } = owner.layout
        if (length > Math.max(SHORT, credit)) continue
        credit -= length
        describe(owner)
      }
    },
    end(): void {
      if (hasUnsentMetadata) open()
      close()
    },
  }
}

/** Parts of layouts that each chunk allows to send again. */
const CREDIT = 4

/** A layout of so many parts is always sent again. */
const SHORT = 64

type Sizes = WeakMap<object, number>

/** How many members an object grows to, as in core. Further ones are ignored. */
const MOST_MEMBERS = 1000

/** Merges like the AI SDK's message metadata: objects key by key, anything else is replaced. */
function merge(before: unknown, after: unknown, owned: Sizes): unknown {
  if (!isRecord(before) || !isRecord(after)) return after
  const merged = owned.has(before) ? before : { ...before }
  let size = owned.get(before) ?? Object.keys(before).length
  for (const [key, value] of Object.entries(after)) {
    const isNew = !Object.hasOwn(merged, key)
    if (key === '__proto__' || (isNew && size >= MOST_MEMBERS)) continue
    merged[key] = isNew ? value : merge(merged[key], value, owned)
    if (isNew) size++
  }
  owned.set(merged, size)
  return merged
}
