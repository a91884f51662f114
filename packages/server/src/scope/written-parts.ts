import { type AGUIEvent, type EventOf, isRecord, type Message, type WritablePart } from '@countersign/core'
import { isId, type NewId } from '../encoding/ids.js'
import { MAX_DATA_PARTS, MAX_UNREAD_PARTS } from '../limits.js'
import { jsonCopy } from '../tools/progress.js'
import { ToolError } from '../tools/tool-errors.js'
import { type Emit, eventSize } from './channel.js'

type Activity = EventOf<'ACTIVITY_SNAPSHOT'>

interface WrittenPartsOptions {
  readonly emit: Emit<AGUIEvent>
  readonly newId: NewId
  /** The conversation before the run: its data parts may be replaced. */
  readonly history: readonly Message[]
  /** The most bytes of one part as JSON. */
  readonly maxSize: number
}

/** What the tools and steps of one run add to the reply, besides the model's own output and the results. */
export class WrittenParts {
  readonly #activities = new Map<string, Activity>()
  /** The ids of all data parts of the conversation that is shown. */
  readonly #ids: Set<string>
  #unread = 0

  constructor(private readonly options: WrittenPartsOptions) {
    this.#ids = new Set(options.history.flatMap(({ role, id }) => (role === 'activity' ? [id] : [])))
  }

  /**
   * Adds a part to a message. The promise never rejects, so that it need not be awaited.
   *
   * @throws ToolError `invalid-argument`
   */
  write(given: WritablePart, messageId: string): Promise<void> {
    const { maxSize } = this.options
    const part = readPart(jsonCopy(given, 'The part that was written'))
    const event = eventOf(part, messageId, (wanted) => this.#idOf(wanted))
    const size = eventSize(event)
    if (size > eventSize(emptyEvent) + 2 * maxSize)
      throw invalid(`it is larger than limits.resultSize, ${maxSize}`)
    if (this.#unread > MAX_UNREAD_PARTS) throw invalid('the parts before it are unread; await write()')
    if (event.type === 'ACTIVITY_SNAPSHOT') this.#keep(event)
    return this.#deliver(event, size)
  }

  async #deliver(event: AGUIEvent, size: number): Promise<void> {
    this.#unread += size
    try {
      await this.options.emit(event)
    } catch {
      // A run whose thread is lost stops by itself.
    } finally {
      this.#unread -= size
    }
  }

  /** A history with this run's data parts, each in its place or at the end. */
  addTo(history: readonly Message[]): readonly Message[] {
    const rest = new Map(this.#activities)
    const placed = history.map((message) => {
      const written = rest.get(message.id)
      return message.role === 'activity' && written && rest.delete(message.id) ? messageOf(written) : message
    })
    return [...placed, ...[...rest.values()].map(messageOf)]
  }

  /** Any other message with that id, also one of another version, would be lost. */
  #idOf(wanted: string | undefined): string {
    const { newId } = this.options
    const id = wanted === undefined ? newId() : newId(wanted, (one) => this.#ids.has(one))
    this.#ids.add(id)
    return id
  }

  #keep(event: Activity): void {
    if (this.#activities.size >= MAX_DATA_PARTS && !this.#activities.has(event.messageId))
      throw invalid(`a run has at most ${MAX_DATA_PARTS} data parts; replace one by writing its id again`)
    this.#activities.set(event.messageId, event)
  }
}

const emptyEvent: AGUIEvent = { type: 'CUSTOM', name: '', value: null }

export function messageOf({ messageId: id, activityType, content, metadata }: Activity): Message {
  return { id, role: 'activity', activityType, content, ...(metadata && { metadata }) }
}

function eventOf(
  part: WritablePart,
  messageId: string,
  idOf: (wanted: string | undefined) => string,
): Activity | EventOf<'CUSTOM'> {
  switch (part.type) {
    case 'data': {
      const { id, name: activityType, data } = part
      const activity = { type: 'ACTIVITY_SNAPSHOT', messageId: idOf(id), activityType } as const
      // The content of an activity must be an object.
      return isRecord(data)
        ? { ...activity, content: data }
        : { ...activity, content: { value: data }, metadata: { countersign: { isWrapped: true } } }
    }
    case 'source': {
      const { type: name, ...source } = part
      return { type: 'CUSTOM', name, value: { messageId, ...source } }
    }
    case 'metadata':
      return { type: 'CUSTOM', name: 'message-metadata', value: { messageId, metadata: part.metadata } }
    default:
      return part satisfies never
  }
}

/** Metadata keys that have a meaning of their own. */
const RESERVED = ['countersign', 'subagent', 'aiSdk']

/** @throws ToolError `invalid-argument` */
function readPart(value: unknown): WritablePart {
  const part: Record<string, unknown> = isRecord(value) ? value : {}
  const { type, id, name, data = null, metadata } = part
  if (type === 'data') {
    if (typeof name !== 'string' || name === '') throw invalid('a data part needs a name')
    if (id !== undefined && !isId(id)) throw invalid('the id of a data part has 1 to 256 characters')
    return { type, name, data, ...(id !== undefined && { id }) }
  }
  if (type === 'source') {
    if (typeof id !== 'string' || id === '') throw invalid('a source needs an id')
    return { ...part, type, id }
  }
  if (type !== 'metadata' || !isRecord(metadata)) throw invalid('it is no data part, source or metadata')
  const taken = RESERVED.find((key) => key in metadata)
  if (taken !== undefined) throw invalid(`the metadata key ${taken} is reserved`)
  return { type, metadata }
}

function invalid(why: string): ToolError {
  return new ToolError(`The part was not written: ${why}.`, { code: 'invalid-argument' })
}
