import type { AGUIEvent, EventOf } from './events.js'
import { violation } from './violation.js'

type ChunkEvent = EventOf<'TEXT_MESSAGE_CHUNK' | 'TOOL_CALL_CHUNK' | 'REASONING_MESSAGE_CHUNK'>
type Fields = Readonly<Record<string, unknown>>

/** A message or tool call opened by chunks and not closed yet. */
interface ChunkStream {
  /** The prefix of its event types: `TEXT_MESSAGE_`, `TOOL_CALL_` or `REASONING_MESSAGE_`. */
  stem: string
  id: unknown
  /** The fields of its START event: the first chunk, completed. */
  opener: Fields
}

const isChunk = (event: AGUIEvent): event is ChunkEvent => event.type.endsWith('_CHUNK')
const idKey = (stem: string) => (stem === 'TOOL_CALL_' ? 'toolCallId' : 'messageId')

const closesNothing = /^(RAW|ACT|REASONING_ENC|SUBAGENT_S)/
const closesEveryLane = /^(RUN_|MESS)/

function fail(chunk: ChunkEvent, rule: string): never {
  throw violation('protocol-violation', chunk.type, rule)
}

/** A subagent, or the agent itself. */
type Lane = string | undefined

const stems = ['TEXT_MESSAGE_', 'TOOL_CALL_', 'REASONING_MESSAGE_']
const thingKey = (stem: string, id: unknown) => `${stem}=${id}`
const none: ReadonlySet<Lane> = new Set()

/** Creates an event of the stream. It has the owner of the stream unless the fields name another. */
const event = ({ stem, id, opener: { subagentRunId } }: ChunkStream, step: string, fields?: Fields) =>
  ({
    ...(subagentRunId !== undefined && { subagentRunId }),
    ...fields,
    type: stem + step,
    [idKey(stem)]: id,
  }) as AGUIEvent

/**
 * Expands `*_CHUNK` events to START, CONTENT or ARGS, and END. Each lane (a subagent, or the agent itself)
 * can have one open stream of chunks.
 */
export class ChunkExpander {
  readonly #lanes = new Map<Lane, ChunkStream>()
  /** The lanes with open streams, by stem, and by stem and id. An index, because a server decides how many there are. */
  readonly #lanesOf = new Map<string, Set<Lane>>()

  /**
   * Takes every event of a stream in order and returns it, or the events that a chunk expands to.
   *
   * @throws CountersignError `protocol-violation` for a first chunk without an id or tool name, for a later
   * chunk that contradicts the first, and for a chunk that could belong to several lanes.
   */
  expand(next: AGUIEvent): AGUIEvent | readonly AGUIEvent[] {
    if (isChunk(next)) return this.#expand(next)
    if (!this.#lanes.size || closesNothing.test(next.type)) return next
    const lane = 'subagentRunId' in next ? next.subagentRunId : undefined
    const all = closesEveryLane.test(next.type)
    const closed = all ? [...this.#lanes.keys()] : [lane, ...this.#named(next)]
    return [...closed.flatMap((of) => this.#close(of)), next]
  }

  /** The lanes whose stream an ordinary event refers to; the event ends those streams. */
  #named(next: Fields): readonly Lane[] {
    const stem = stems.find((one) => String(next.type).startsWith(one))
    return stem === undefined ? [] : [...this.#fitting(stem, next[idKey(stem)])]
  }

  #fitting(stem: string, id: unknown): ReadonlySet<Lane> {
    return this.#lanesOf.get(id === undefined ? stem : thingKey(stem, id)) ?? none
  }

  #expand(chunk: ChunkEvent): AGUIEvent[] {
    const stem = chunk.type.slice(0, -5)
    const isCall = stem === 'TOOL_CALL_'
    const { role, name, toolCallName, parentMessageId, ...rest }: Fields = chunk
    const established: Fields = { role, name, toolCallName, parentMessageId }
    const id = rest[idKey(stem)]
    const lane = this.#laneOf(chunk, stem, id)
    let open = this.#lanes.get(lane)
    let events: AGUIEvent[] = []
    if (open?.stem === stem && (id === undefined || id === open.id)) {
      for (const key in established) {
        if (established[key] !== undefined && established[key] !== open.opener[key])
          fail(chunk, `${key} contradicts the first chunk`)
      }
    } else {
      if (id === undefined) fail(chunk, `the first chunk needs ${idKey(stem)}`)
      if (isCall && toolCallName === undefined) fail(chunk, 'the first chunk needs toolCallName')
      events = this.#close(lane)
      const { delta, rawEvent, ...opener }: Fields = chunk
      open = {
        stem,
        id,
        opener: isCall ? opener : { ...opener, role: stem[0] === 'R' ? 'reasoning' : (role ?? 'assistant') },
      }
      this.#lanes.set(lane, open)
      for (const key of [stem, thingKey(stem, id)]) {
        const lanes = this.#lanesOf.get(key) ?? new Set()
        this.#lanesOf.set(key, lanes.add(lane))
      }
      events.push(event(open, 'START', open.opener))
    }
    if (chunk.delta !== undefined || chunk.rawEvent !== undefined || (!events.length && chunk.metadata)) {
      events.push(event(open, isCall ? 'ARGS' : 'CONTENT', { ...rest, delta: chunk.delta ?? '' }))
    }
    return events
  }

  #laneOf(chunk: ChunkEvent, stem: string, id: unknown): Lane {
    const lane = chunk.subagentRunId
    const own = this.#lanes.get(lane)
    if (own?.stem === stem && (id === undefined || id === own.id)) return lane
    if (id === undefined && lane !== undefined) return lane
    const fits = this.#fitting(stem, id)
    if (fits.size > 1) fail(chunk, 'it fits several open streams')
    const [found] = fits.size > 0 ? fits : [lane]
    if (lane !== undefined && lane !== found) fail(chunk, `${id} has another owner`)
    return found
  }

  #close(lane: Lane): AGUIEvent[] {
    const open = this.#lanes.get(lane)
    if (!open) return []
    this.#lanes.delete(lane)
    for (const key of [open.stem, thingKey(open.stem, open.id)]) {
      const lanes = this.#lanesOf.get(key)
      lanes?.delete(lane)
      if (lanes?.size === 0) this.#lanesOf.delete(key)
    }
    return [event(open, 'END')]
  }
}
