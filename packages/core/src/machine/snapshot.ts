import {
  isTerminal,
  type MessagePart,
  type ToolCallApproval,
  type ToolCallPart,
  type ToolResultPart,
  type UIMessage,
} from '../messages.js'
import type { MessagesSnapshotEvent } from '../protocol/events.js'
import { changed, sameJson } from '../value.js'
import { askApproval, doubt, markChanged } from './approval-request.js'
import { decisionOf, settle } from './call-result.js'
import { putBehind } from './calls.js'
import { markStale, touchMessage } from './changes.js'
import type { CallDraft, MessageDraft, PartDraft } from './data.js'
import { addDone, addMessage, dropPart, endOf, keepParts, renameMessage, retainMessages } from './drafts.js'
import { type Effect, effectsOf, type Outcome } from './effects.js'
import { foldMessages } from './fold.js'
import { loadCall, settleLoaded } from './load.js'
import { nameOf } from './message-events.js'
import { publishMessage, publishRebuilt, setPublished } from './read.js'
import { readApproval } from './read-approval.js'
import type { ChatState } from './state.js'

/**
 * MESSAGES_SNAPSHOT: the server's messages replace ours one by one, each in its current position; new ones are appended (AG-UI 1.0,
 * state). What is unchanged keeps its identity. Known calls keep what the user was shown and answered; a snapshot cannot answer anything.
 */
export function applySnapshot(state: ChatState, event: MessagesSnapshotEvent): readonly Effect[] {
  const messages = withOwnIds(foldMessages(event.messages))
  const carries = new Set(event.messages.map((message) => message.role))
  const ids = new Set(messages.map((message) => message.id))
  const isRunning = state.run.phase !== 'idle'
  const same = sameCalls(state, messages, ids)
  const found = new Set<PartDraft>(same.values())
  /** During a run, a snapshot may be older than the stream: whatever is still streaming or open is kept. */
  const isUnderWay = (draft: MessageDraft) =>
    isRunning &&
    draft.turn === state.turn &&
    (draft.streaming || draft.parts.some((part) => isOpen(state, part) && !found.has(part)))
  const underWay = new Set(state.order.filter((draft) => !ids.has(draft.id) && isUnderWay(draft)))
  takeOut(state, found, ids)
  const keepsThoughts = !carries.has('reasoning')
  const isGone = (draft: MessageDraft) => !ids.has(draft.id) && !underWay.has(draft)
  if (keepsThoughts) for (const draft of state.order) if (isGone(draft)) leaveThoughts(state, draft)
  retainMessages(state, (draft) => !isGone(draft) || keptWithout(draft, carries))
  const outcomes = messages.flatMap((message) =>
    mergeMessage(state, message, { same, found, underWay }, keepsThoughts),
  )
  if (state.run.phase !== 'idle') state.run = changed(state.run, { from: endOf(state) })
  return outcomes.flatMap((outcome) => effectsOf(event, outcome))
}

/** The later of two messages with one id becomes another message under the next free numbered id, as in a stream: no text is lost. */
function withOwnIds(messages: readonly UIMessage[]): readonly UIMessage[] {
  const times = new Map<string, number>()
  const unused = (id: string): string => {
    const n = (times.get(id) ?? 0) + 1
    times.set(id, n)
    return n === 1 ? id : unused(nameOf(id, n))
  }
  return messages.map((message) => changed(message, { id: unused(message.id) }))
}

/** What is known of the calls in a snapshot. */
interface Known {
  /** The call of the page that each part is. */
  readonly same: ReadonlyMap<MessagePart, CallDraft>
  /** Those calls. */
  readonly found: ReadonlySet<PartDraft>
  /** Messages that are newer than the snapshot. */
  readonly underWay: ReadonlySet<MessageDraft>
}

/** With how many calls of the same id a call is compared at most. Those of the page and of the snapshot come in the same order. */
const MOST_COMPARED = 100

/** Removes the first part that is that call, and returns it. */
function take(
  state: ChatState,
  parts: Map<string, ToolCallPart[]>,
  call: CallDraft,
): ToolCallPart | undefined {
  const list = parts.get(call.id) ?? []
  const at = list.slice(0, MOST_COMPARED).findIndex((part) => isSame(state, call, part))
  return at < 0 ? undefined : list.splice(at, 1)[0]
}

/**
 * Ids may repeat, so the arguments must agree as well, as they were proposed or as the user edited them. Those of the open run
 * may be incomplete on either side.
 */
function isSame(state: ChatState, call: CallDraft, { name, arguments: text, input }: ToolCallPart): boolean {
  if (call.name !== name) return false
  const isPart = (input === undefined || text === '') && call.arguments.startsWith(text)
  if (isPart && state.run.phase !== 'idle' && call.owner.turn === state.turn) return true
  const isInput = (value: unknown) => value !== undefined && sameJson(value, input)
  return !!call.reader || call.arguments === text || isInput(call.input) || isInput(call.approval?.input)
}

function isOpen(state: ChatState, part: PartDraft): part is CallDraft {
  return part.kind === 'call' && state.open.has(part)
}

/** The calls that are in the snapshot: in their own message, or open ones in a message with another id than in the stream. */
function sameCalls(
  state: ChatState,
  messages: readonly UIMessage[],
  ids: ReadonlySet<string>,
): ReadonlyMap<MessagePart, CallDraft> {
  const same = new Map<MessagePart, CallDraft>()
  const elsewhere = new Map<string, ToolCallPart[]>()
  for (const { id, parts } of messages) {
    const own = new Map<string, ToolCallPart[]>()
    for (const part of parts) if (part.type === 'tool-call') addTo(own, part)
    for (const call of callsOf(state.messages.get(id))) {
      const part = take(state, own, call)
      if (part) same.set(part, call)
    }
    for (const part of [...own.values()].flat()) addTo(elsewhere, part)
  }
  for (const draft of state.order) {
    if (ids.has(draft.id)) continue
    for (const call of callsOf(draft)) {
      const part = take(state, elsewhere, call)
      if (part && isOpen(state, call) && (call.approval || state.run.phase !== 'idle')) same.set(part, call)
    }
  }
  return same
}

function addTo(parts: Map<string, ToolCallPart[]>, part: ToolCallPart): void {
  const list = parts.get(part.id)
  if (list) list.push(part)
  else parts.set(part.id, [part])
}

function callsOf(draft: MessageDraft | undefined): readonly CallDraft[] {
  return draft?.parts.filter((part) => part.kind === 'call') ?? []
}

/** Takes the calls that are found in another message out of those that the snapshot lacks. */
function takeOut(state: ChatState, found: ReadonlySet<PartDraft>, ids: ReadonlySet<string>): void {
  for (const owner of new Set([...found].map((call) => call.owner))) {
    if (ids.has(owner.id)) continue
    keepParts(
      state,
      owner,
      owner.parts.filter((part) => !found.has(part)),
    )
  }
}

/** Activities and bare reasoning stay, unless the snapshot contains messages of that kind. */
function keptWithout(draft: MessageDraft, carries: ReadonlySet<string>): boolean {
  const only = (test: (part: PartDraft) => boolean) => draft.parts.length > 0 && draft.parts.every(test)
  if (only((part) => part.kind === 'fixed' && part.part.type === 'data')) return !carries.has('activity')
  return only(isThought) && !carries.has('reasoning')
}

function isThought({ kind }: PartDraft): boolean {
  return kind === 'reasoning'
}

/** Keeps the reasoning of a removed message if the snapshot has no reasoning at all: most servers store none. */
function leaveThoughts(state: ChatState, draft: MessageDraft): void {
  const thoughts = draft.parts.filter(isThought)
  const [first] = thoughts
  if (first?.kind !== 'reasoning' || state.messages.has(first.id)) return
  for (const part of draft.parts) if (!isThought(part)) dropPart(state, part)
  keepParts(state, draft, thoughts)
  const subagent = draft.metadata?.subagent
  Object.assign(draft, { text: undefined, streaming: false })
  draft.metadata = subagent === undefined ? undefined : { subagent }
  renameMessage(state, draft, first.id)
}

function mergeMessage(state: ChatState, told: UIMessage, known: Known, keepsThoughts: boolean): Outcome[] {
  const draft = state.messages.get(told.id)
  if (!draft) return fillMessage(state, addMessage(state, told), told, known)
  const before = publishMessage(draft)
  const thoughts = keepsThoughts ? before.parts.filter(({ type }) => type === 'reasoning') : []
  const parts = [...thoughts, ...withOpenText(draft, told.parts), ...unsentResults(draft, told.parts)]
  const message = { ...told, parts }
  if (sameJson(before, message)) return []
  const textOpen = draft.text !== undefined
  const lacking = callsOf(draft).filter((call) => !known.found.has(call))
  for (const part of draft.parts) if (part.kind !== 'call') dropPart(state, part)
  draft.parts = []
  draft.sources = undefined
  setPublished(draft, undefined)
  draft.metadata = message.metadata && { ...message.metadata }
  touchMessage(state, draft)
  const outcomes = fillMessage(state, draft, message, known)
  const isNew = (part: MessagePart) => part.type === 'tool-call' && !known.same.has(part)
  const others = new Set(message.parts.filter(isNew).map((part) => 'id' in part && part.id))
  // A call that the snapshot lacks is kept, at the end, while an approval depends on it or the run is open. If the snapshot has another call
  // in its place, its request can't be answered.
  for (const call of lacking) {
    const isReplaced = others.has(call.id)
    const isKept = call.approval || (state.run.phase !== 'idle' && !isReplaced)
    if (isTerminal(call.state) || !isKept) dropPart(state, call)
    else {
      keepCall(draft, call)
      if (isReplaced) outcomes.push(markChanged(state, call))
    }
  }
  const last = draft.parts.at(-1)
  draft.text = textOpen && last?.kind === 'text' ? last : undefined
  publishRebuilt(draft, before)
  return outcomes
}

/** The results of client tools that no request has carried yet: the snapshot cannot have them. */
function unsentResults({ parts }: MessageDraft, told: readonly MessagePart[]): readonly MessagePart[] {
  const unsent = new Set(
    parts.flatMap((part) => (part.kind === 'call' && part.outputSent === false ? part.id : [])),
  )
  for (const part of told) if (part.type === 'tool-result') unsent.delete(part.toolCallId)
  return parts.flatMap((draft) => {
    const part = draft.kind === 'fixed' ? draft.part : undefined
    return part?.type === 'tool-result' && unsent.has(part.toolCallId) ? [part] : []
  })
}

/** The snapshot's parts of a message, plus the rest of a text that is still streaming. */
function withOpenText(draft: MessageDraft, told: readonly MessagePart[]): readonly MessagePart[] {
  const tail = textOf(draft.parts).slice(textOf(told).length)
  if (!draft.streaming || !draft.text || tail === '' || textOf(told) + tail !== textOf(draft.parts))
    return told
  const last = told.at(-1)
  return last?.type === 'text'
    ? [...told.slice(0, -1), { ...last, text: last.text + tail }]
    : [...told, { type: 'text', text: tail }]
}

function textOf(parts: readonly (PartDraft | MessagePart)[]): string {
  return parts.map((part) => ('text' in part && !('id' in part) ? part.text : '')).join('')
}

function fillMessage(state: ChatState, draft: MessageDraft, message: UIMessage, known: Known): Outcome[] {
  const results = new Map(
    message.parts.flatMap((part) => (part.type === 'tool-result' ? [[part.toolCallId, part]] : [])),
  )
  return message.parts.flatMap((part) => {
    if (part.type !== 'tool-call') {
      addDone(state, draft, part)
      return []
    }
    const result = isTerminal(part.state) ? results.get(part.id) : undefined
    const call = known.same.get(part)
    if (call) return [mergeCall(state, draft, part, call, result)]
    const latest = state.calls.get(part.id)
    const outcome = addSnapshotCall(state, draft, part, result !== undefined)
    if (!latest || !known.underWay.has(latest.owner)) return [outcome]
    putBehind(state, latest)
    const { id = latest.approval?.id } = part.approval ?? {}
    return result || id !== latest.approval?.id ? [outcome] : [outcome, doubt(state, latest)]
  })
}

function mergeCall(
  state: ChatState,
  owner: MessageDraft,
  part: ToolCallPart,
  call: CallDraft,
  result: ToolResultPart | undefined,
): Outcome {
  keepCall(owner, call)
  if (state.run.phase !== 'idle') call.saidIn = state.run.runId
  if (result && !call.answered) settle(state, call, part, decisionOf(result.metadata))
  const approval = readApproval(part.approval) ?? call.approval
  if (result || !approval || isTerminal(call.state)) return undefined
  const asked = { toolCallId: part.id, input: { value: call.input }, approval }
  return askApproval(state, asked, call)
}

/** A call first seen in a snapshot: its approval request is shown, but no answer to an open one is read from there. */
function addSnapshotCall(
  state: ChatState,
  owner: MessageDraft,
  part: ToolCallPart,
  answered: boolean,
): Outcome {
  const { approval, ...bare } = answered ? part : settleLoaded(part)
  const question = answered ? approval && settledRecord(approval) : readApproval(approval)
  if (answered || isTerminal(bare.state)) {
    loadCall(state, owner, { ...bare, ...(question && { approval: question }) })
    return undefined
  }
  const call = loadCall(state, owner, { ...bare, state: 'input-complete' })
  return question && askApproval(state, { toolCallId: part.id, approval: question }, call)
}

/** The approval of a call that has its result: nothing of it is in transit any more. */
function settledRecord({ delivery, ...approval }: ToolCallApproval): ToolCallApproval {
  return delivery === undefined ? approval : { ...approval, delivery: 'settled' }
}

/** Appends a known call to a message that is being rebuilt. */
function keepCall(owner: MessageDraft, call: CallDraft): void {
  call.owner = owner
  call.index = owner.parts.length
  owner.parts.push(call)
  // It may already be marked stale in its previous message.
  call.stale = false
  markStale(call)
}
