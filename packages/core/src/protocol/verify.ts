import type { AGUIEvent, EventOf, Message } from './events.js'
import { violation } from './violation.js'

/** Which conversation and which run the events must be about; what is left out is not compared. */
export interface ExpectedRun {
  threadId?: string | undefined
  runId?: string | undefined
}

/** Checks the order of well-formed events, chunks expanded. It looks at one event at a time and keeps only ids. */
export interface EventVerifier {
  /** @throws CountersignError `protocol-violation` */
  verify(event: AGUIEvent): void
  /** The stream has ended. @throws CountersignError `truncated-stream` unless its last run has ended too. */
  end(): void
}

type Owner = string | undefined

/** The events that come in brackets: what they are about, whether they open it, whether they close it. */
const bracket = /^(.+)_(?:(START|STARTED)|(END|FINISHED|ERROR)|CONTENT|ARGS)$/
/** What it finds in each type. */
const brackets = new Map<string, readonly string[]>()

/** What a run has told of in one namespace of ids: who owns it (`undefined` is the agent itself), and what of it is open. */
interface Things {
  readonly owners: Map<unknown, Owner>
  readonly open: Set<unknown>
}

/** The namespace of ids that a message of each role is in; all others are in that of text messages. */
const places: Readonly<Record<string, string>> = { reasoning: 'REASONING_MESSAGE', activity: 'ACTIVITY' }

function fail(event: AGUIEvent, rule: string): never {
  throw violation('protocol-violation', event.type, rule)
}

function match(event: AGUIEvent, name: string, actual: string, wanted = actual): void {
  if (actual !== wanted) fail(event, `${name} must be ${wanted}`)
}

/** The id of what an event is about. Whoever starts a step must finish it, so its owner is part of its name. */
function idOf(event: AGUIEvent): unknown {
  const { toolCallId, messageId, stepName, subagentRunId }: Readonly<Record<string, unknown>> = event
  return (
    toolCallId ??
    messageId ??
    (stepName === undefined ? subagentRunId : JSON.stringify([stepName, subagentRunId]))
  )
}

/**
 * The sequence rules of AG-UI 1.0 for one stream, which may carry several runs of one thread after one another. Beyond what
 * its reference client checks: the ids of RUN_FINISHED, of the thread and of interrupts, and an end without a terminal event.
 * After a throw the verifier is of no further use.
 */
export function createEventVerifier(expected: ExpectedRun = {}): EventVerifier {
  let { threadId } = expected
  let runId: string | undefined
  let last: 'RUN_STARTED' | 'RUN_FINISHED' | 'RUN_ERROR' | undefined
  /** By namespace, for the whole run. */
  const all = new Map<string, Things>()

  const things = (place: string): Things => {
    const found = all.get(place) ?? { owners: new Map(), open: new Set() }
    all.set(place, found)
    return found
  }

  const has = (place: string, id: unknown) => things(place).owners.has(id)
  const ownerOf = (place: string, id: unknown) => things(place).owners.get(id)

  const agree = (
    event: AGUIEvent,
    place: string,
    id: unknown,
    owner: Owner,
    silent = owner === undefined,
  ) => {
    if (!silent && has(place, id) && ownerOf(place, id) !== owner)
      fail(event, `${place} ${id} has another owner`)
  }

  const own = (place: string, id: unknown, owner: Owner, replace = true) => {
    if (replace || !has(place, id)) things(place).owners.set(id, owner)
  }

  const ownMessages = (messages: readonly Message[], replace?: boolean) => {
    for (const message of messages) {
      own(places[message.role] ?? 'TEXT_MESSAGE', message.id, message.subagentRunId, replace)
      if (message.role !== 'assistant') continue
      for (const { id } of message.toolCalls ?? []) own('TOOL_CALL', id, message.subagentRunId, replace)
    }
  }

  const startRun = (event: EventOf<'RUN_STARTED'>) => {
    if (last === event.type) fail(event, `run ${runId} is still open`)
    match(event, 'threadId', event.threadId, threadId)
    // The request's run is the first one; the others of its stream have ids that the server gave.
    if (runId === undefined) match(event, 'runId', event.runId, expected.runId)
    ;({ threadId, runId } = event)
    all.clear()
    ownMessages(event.input?.messages ?? [], false)
  }

  const finishRun = (event: EventOf<'RUN_FINISHED'>) => {
    const left = [...all].flatMap(([place, { open }]) => [...open].map((id) => `${place} ${id}`))
    if (left.length > 0) fail(event, `still open: ${left}`)
    match(event, 'threadId', event.threadId, threadId)
    match(event, 'runId', event.runId, runId)
    const interrupts = event.outcome?.type === 'interrupt' ? event.outcome.interrupts : []
    if (new Set(interrupts.map(({ id }) => id)).size < interrupts.length)
      fail(event, 'interrupt ids must differ')
  }

  const startSubagent = (event: EventOf<'SUBAGENT_STARTED'>) => {
    const { subagentRunId, parentSubagentRunId: parent } = event
    if (has('SUBAGENT', subagentRunId)) fail(event, `${subagentRunId} has been used in this run`)
    if (parent !== undefined && !has('SUBAGENT', parent)) fail(event, `its parent ${parent} is unknown`)
  }

  /** A call belongs to the message that carries it. Answers the owner that the call has by that. */
  const inherit = (event: EventOf<'TOOL_CALL_START'>): Owner => {
    const { parentMessageId, subagentRunId } = event
    if (!has('TEXT_MESSAGE', parentMessageId)) return subagentRunId
    const owner = ownerOf('TEXT_MESSAGE', parentMessageId)
    agree(event, 'TEXT_MESSAGE', parentMessageId, subagentRunId)
    agree(event, 'TOOL_CALL', event.toolCallId, owner, false)
    return owner
  }

  const step = (event: AGUIEvent, owner: Owner) => {
    const found = brackets.get(event.type) ?? bracket.exec(event.type) ?? []
    brackets.set(event.type, found)
    const [, place, opens, closes] = found
    if (!place) return
    const id = idOf(event)
    const { open } = things(place)
    if (open.has(id) === !!opens) fail(event, `${place} ${id} is ${opens ? 'already' : 'not'} open`)
    if (closes) open.delete(id)
    if (opens) open.add(id)
    // A reasoning span and a reasoning message are opened apart but owned as one.
    const owned = place === 'REASONING' ? 'REASONING_MESSAGE' : place
    agree(event, owned, id, owner)
    if (opens) own(owned, id, owner, false)
  }

  const verify = (event: AGUIEvent): void => {
    const { type } = event
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
        if (type === 'RUN_STARTED') startRun(event)
        if (type === 'RUN_FINISHED') finishRun(event)
        last = type
        break
      case 'MESSAGES_SNAPSHOT':
        ownMessages(event.messages)
        break
      case 'TOOL_CALL_RESULT':
        own('TEXT_MESSAGE', event.messageId, owner)
        break
      case 'ACTIVITY_SNAPSHOT':
        own('ACTIVITY', event.messageId, owner, event.replace)
        break
      case 'ACTIVITY_DELTA':
        agree(event, 'ACTIVITY', event.messageId, owner)
        break
      case 'REASONING_ENCRYPTED_VALUE': {
        const { subtype, entityId } = event
        const message = has('TEXT_MESSAGE', entityId) ? 'TEXT_MESSAGE' : 'REASONING_MESSAGE'
        agree(event, subtype === 'message' ? message : 'TOOL_CALL', entityId, owner)
        break
      }
      default:
        if (type === 'SUBAGENT_STARTED') startSubagent(event)
        step(event, type === 'TOOL_CALL_START' ? inherit(event) : owner)
    }
  }

  return {
    verify,
    end() {
      if (!last || last === 'RUN_STARTED')
        throw violation('truncated-stream', 'end', 'RUN_FINISHED or RUN_ERROR is missing')
    },
  }
}
