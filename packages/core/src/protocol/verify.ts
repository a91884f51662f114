import type { AGUIEvent, EventOf, Message } from './events.js'
import { violation } from './violation.js'

/** The expected thread and run; whatever is absent is not compared. */
export interface ExpectedRun {
  threadId?: string | undefined
  runId?: string | undefined
}

type Owner = string | undefined

/** Matches events that open, continue or close something: what it is, whether it opens, whether it closes. */
const bracket = /^(.+)_(?:(START|STARTED)|(END|FINISHED|ERROR)|CONTENT|ARGS)$/
const brackets = new Map<string, readonly string[]>()

function bracketOf(type: string): readonly string[] {
  let found = brackets.get(type)
  if (!found) {
    found = bracket.exec(type) ?? []
    brackets.set(type, found)
  }
  return found
}

/** What a run contains in one namespace of ids: who owns each id (`undefined` is the agent itself), and which are open. */
interface Things {
  readonly place: string
  readonly owners: Map<unknown, Owner>
  readonly open: Set<unknown>
}

/** The namespace of message ids by role; all others are in that of text messages. */
const places: Readonly<Record<string, string>> = { reasoning: 'REASONING_MESSAGE', activity: 'ACTIVITY' }

function fail(event: AGUIEvent, rule: string): never {
  throw violation('protocol-violation', event.type, rule)
}

function match(event: AGUIEvent, name: string, actual: string, wanted = actual): void {
  if (actual !== wanted) fail(event, `${name} must be ${wanted}`)
}

/** The id of what an event is about. The owner is part of a step's id, because whoever starts a step must finish it. */
function idOf(event: AGUIEvent): unknown {
  const { toolCallId, messageId, stepName, subagentRunId }: Readonly<Record<string, unknown>> = event
  return (
    toolCallId ??
    messageId ??
    (stepName === undefined ? subagentRunId : JSON.stringify([stepName, subagentRunId]))
  )
}

/**
 * The sequence rules of AG-UI 1.0 for one stream, which may carry several runs of one thread in succession.
 * Unlike the reference client, it also checks the ids of RUN_FINISHED, of the thread and of interrupts, and
 * rejects an end without a terminal event. Unusable after it has thrown.
 */
export class EventVerifier {
  readonly #expected: ExpectedRun
  #threadId: string | undefined
  #runId: string | undefined = undefined
  #last: 'RUN_STARTED' | 'RUN_FINISHED' | 'RUN_ERROR' | undefined = undefined
  /** By namespace, for the whole run. */
  readonly #all = new Map<string, Things>()

  constructor(expected: ExpectedRun) {
    this.#expected = expected
    this.#threadId = expected.threadId
  }

  /** Checks the next event; chunks must be expanded. Stores only ids. @throws CountersignError `protocol-violation` */
  verify(event: AGUIEvent): void {
    const { type } = event
    const last = this.#last
    const owner = 'subagentRunId' in event ? event.subagentRunId : undefined
    if (type !== 'RUN_STARTED' && last !== 'RUN_STARTED' && (type !== 'RUN_ERROR' || last === type)) {
      fail(
        event,
        last ? `the run has ended with ${last}` : 'the first event must be RUN_STARTED or RUN_ERROR',
      )
    }
    switch (type) {
      case 'RUN_STARTED':
      case 'RUN_FINISHED':
      case 'RUN_ERROR':
        if (type === 'RUN_STARTED') this.#startRun(event)
        if (type === 'RUN_FINISHED') this.#finishRun(event)
        this.#last = type
        break
      case 'MESSAGES_SNAPSHOT':
        this.#ownMessages(event.messages)
        break
      case 'TOOL_CALL_RESULT':
        own(this.#things('TEXT_MESSAGE'), event.messageId, owner)
        break
      case 'ACTIVITY_SNAPSHOT':
        own(this.#things('ACTIVITY'), event.messageId, owner, event.replace)
        break
      case 'ACTIVITY_DELTA':
        agree(event, this.#things('ACTIVITY'), event.messageId, owner)
        break
      case 'REASONING_ENCRYPTED_VALUE': {
        const { subtype, entityId } = event
        const texts = this.#things('TEXT_MESSAGE')
        const messages = texts.owners.has(entityId) ? texts : this.#things('REASONING_MESSAGE')
        agree(event, subtype === 'message' ? messages : this.#things('TOOL_CALL'), entityId, owner)
        break
      }
      default:
        if (type === 'SUBAGENT_STARTED') this.#startSubagent(event)
        this.#step(event, type === 'TOOL_CALL_START' ? this.#inherit(event) : owner)
    }
  }

  /** The stream has ended. @throws CountersignError `truncated-stream` unless its last run has ended too. */
  end(): void {
    if (!this.#last || this.#last === 'RUN_STARTED')
      throw violation('truncated-stream', 'end', 'RUN_FINISHED or RUN_ERROR is missing')
  }

  #things(place: string): Things {
    let found = this.#all.get(place)
    if (!found) {
      found = { place, owners: new Map(), open: new Set() }
      this.#all.set(place, found)
    }
    return found
  }

  #ownMessages(messages: readonly Message[], replace?: boolean): void {
    for (const message of messages) {
      own(this.#things(places[message.role] ?? 'TEXT_MESSAGE'), message.id, message.subagentRunId, replace)
      if (message.role !== 'assistant') continue
      for (const { id } of message.toolCalls ?? [])
        own(this.#things('TOOL_CALL'), id, message.subagentRunId, replace)
    }
  }

  #startRun(event: EventOf<'RUN_STARTED'>): void {
    if (this.#last === event.type) fail(event, `run ${this.#runId} is still open`)
    match(event, 'threadId', event.threadId, this.#threadId)
    // The first run is that of the request; later runs in the stream have ids chosen by the server.
    if (this.#runId === undefined) match(event, 'runId', event.runId, this.#expected.runId)
    this.#threadId = event.threadId
    this.#runId = event.runId
    this.#all.clear()
    this.#ownMessages(event.input?.messages ?? [], false)
  }

  #finishRun(event: EventOf<'RUN_FINISHED'>): void {
    const left = [...this.#all].flatMap(([place, { open }]) => [...open].map((id) => `${place} ${id}`))
    if (left.length > 0) fail(event, `still open: ${left}`)
    match(event, 'threadId', event.threadId, this.#threadId)
    match(event, 'runId', event.runId, this.#runId)
    const interrupts = event.outcome?.type === 'interrupt' ? event.outcome.interrupts : []
    if (new Set(interrupts.map(({ id }) => id)).size < interrupts.length)
      fail(event, 'interrupt ids must differ')
  }

  #startSubagent(event: EventOf<'SUBAGENT_STARTED'>): void {
    const { subagentRunId, parentSubagentRunId: parent } = event
    const { owners } = this.#things('SUBAGENT')
    if (owners.has(subagentRunId)) fail(event, `${subagentRunId} has been used in this run`)
    if (parent !== undefined && !owners.has(parent)) fail(event, `its parent ${parent} is unknown`)
  }

  /** A call belongs to the message that carries it. Returns the owner that the call gets from it. */
  #inherit(event: EventOf<'TOOL_CALL_START'>): Owner {
    const { parentMessageId, subagentRunId } = event
    const messages = this.#things('TEXT_MESSAGE')
    if (!messages.owners.has(parentMessageId)) return subagentRunId
    const owner = messages.owners.get(parentMessageId)
    agree(event, messages, parentMessageId, subagentRunId)
    agree(event, this.#things('TOOL_CALL'), event.toolCallId, owner, false)
    return owner
  }

  #step(event: AGUIEvent, owner: Owner): void {
    const [, place, opens, closes] = bracketOf(event.type)
    if (!place) return
    const id = idOf(event)
    const these = this.#things(place)
    const { open } = these
    if (open.has(id) === !!opens) fail(event, `${place} ${id} is ${opens ? 'already' : 'not'} open`)
    if (closes) open.delete(id)
    if (opens) open.add(id)
    // A reasoning span and a reasoning message open separately but share an owner.
    const owned = place === 'REASONING' ? this.#things('REASONING_MESSAGE') : these
    agree(event, owned, id, owner)
    if (opens) own(owned, id, owner, false)
  }
}

/** An owner must not change. Without an owner (`silent`), nothing is compared. */
function agree(
  event: AGUIEvent,
  { place, owners }: Things,
  id: unknown,
  owner: Owner,
  silent = owner === undefined,
): void {
  if (!silent && owners.has(id) && owners.get(id) !== owner) fail(event, `${place} ${id} has another owner`)
}

function own({ owners }: Things, id: unknown, owner: Owner, replace = true): void {
  if (replace || !owners.has(id)) owners.set(id, owner)
}
