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
import { askApproval } from './approval-request.js'
import { decisionOf, settle } from './call-result.js'
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
  const moved = movedCalls(state, messages, ids)
  /** During a run, a snapshot may be older than the stream: whatever is still streaming or open is kept. */
  const isUnderWay = (draft: MessageDraft) =>
    isRunning &&
    draft.turn === state.turn &&
    (draft.streaming || draft.parts.some((part) => isOpen(state, part) && !moved.has(part)))
  const underWay = new Set(state.order.filter((draft) => !ids.has(draft.id) && isUnderWay(draft)))
  const detached = takeOpen(state, (call) => moved.has(call) && (isRunning || call.approval))
  const keepsThoughts = !carries.has('reasoning')
  const isGone = (draft: MessageDraft) => !ids.has(draft.id) && !underWay.has(draft)
  if (keepsThoughts) for (const draft of state.order) if (isGone(draft)) leaveThoughts(state, draft)
  retainMessages(state, (draft) => !isGone(draft) || keptWithout(draft, carries))
  const outcomes = messages.flatMap((message) => mergeMessage(state, message, detached, keepsThoughts))
  for (const call of left(detached)) dropPart(state, call)
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

/** Calls by id, in order; removed as they are found in the snapshot. */
type Calls = Map<string, CallDraft[]>

function byId(calls: Iterable<CallDraft>): Calls {
  const found: Calls = new Map()
  for (const call of calls) {
    const same = found.get(call.id)
    if (same) same.push(call)
    else found.set(call.id, [call])
  }
  return found
}

function left(calls: Calls): CallDraft[] {
  return [...calls.values()].flat()
}

function isOpen(state: ChatState, part: PartDraft): part is CallDraft {
  return part.kind === 'call' && state.open.has(part)
}

/** Open calls that the snapshot has in another message. Ids may repeat: those that it has in their own message stand for no other call. */
function movedCalls(
  state: ChatState,
  messages: readonly UIMessage[],
  ids: ReadonlySet<string>,
): ReadonlySet<PartDraft> {
  const unmatched = new Map<string, number>()
  const count = (id: string, change: number) => unmatched.set(id, (unmatched.get(id) ?? 0) + change)
  for (const { parts } of messages) for (const part of parts) if (part.type === 'tool-call') count(part.id, 1)
  for (const { id, parts } of state.order)
    if (ids.has(id)) for (const part of parts) if (part.kind === 'call') count(part.id, -1)
  const elsewhere = [...state.open].filter((call) => !ids.has(call.owner.id))
  return new Set(elsewhere.filter(({ id }) => Number(count(id, -1).get(id)) >= 0))
}

/** Takes open calls out of messages that the snapshot lacks: a server may move a call to a message with another id than in its stream. */
function takeOpen(state: ChatState, isTold: (call: CallDraft) => unknown): Calls {
  const calls = [...state.open].filter(isTold)
  const taken = new Set<PartDraft>(calls)
  for (const owner of new Set(calls.map((call) => call.owner))) {
    keepParts(
      state,
      owner,
      owner.parts.filter((part) => !taken.has(part)),
    )
  }
  return byId(calls)
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

function mergeMessage(state: ChatState, told: UIMessage, detached: Calls, keepsThoughts: boolean): Outcome[] {
  const draft = state.messages.get(told.id)
  if (!draft) return fillMessage(state, addMessage(state, told), told, detached)
  const before = publishMessage(draft)
  const thoughts = keepsThoughts ? before.parts.filter(({ type }) => type === 'reasoning') : []
  const message = { ...told, parts: [...thoughts, ...withOpenText(draft, told.parts)] }
  if (sameJson(before, message)) return []
  const textOpen = draft.text !== undefined
  const calls = byId(draft.parts.filter((part) => part.kind === 'call'))
  for (const part of draft.parts) if (part.kind !== 'call') dropPart(state, part)
  draft.parts = []
  draft.sources = undefined
  setPublished(draft, undefined)
  draft.metadata = message.metadata && { ...message.metadata }
  touchMessage(state, draft)
  const outcomes = fillMessage(state, draft, message, detached, calls)
  // A call that the snapshot lacks is kept, at the end, while an approval depends on it or the run is open.
  for (const call of left(calls)) {
    if ((call.approval || state.run.phase !== 'idle') && !isTerminal(call.state)) keepCall(draft, call)
    else dropPart(state, call)
  }
  const last = draft.parts.at(-1)
  draft.text = textOpen && last?.kind === 'text' ? last : undefined
  publishRebuilt(draft, before)
  return outcomes
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

function fillMessage(
  state: ChatState,
  draft: MessageDraft,
  message: UIMessage,
  detached: Calls,
  calls: Calls = new Map(),
): Outcome[] {
  const results = new Map(
    message.parts.flatMap((part) => (part.type === 'tool-result' ? [[part.toolCallId, part]] : [])),
  )
  return message.parts.map((part) => {
    if (part.type !== 'tool-call') {
      addDone(state, draft, part)
      return undefined
    }
    let known = calls.get(part.id)?.shift() ?? detached.get(part.id)?.shift()
    const result = isTerminal(part.state) ? results.get(part.id) : undefined
    // The rest of its arguments did not arrive here, but the server has them.
    if (known?.error?.code === 'incomplete-arguments') {
      dropPart(state, known)
      known = undefined
    }
    return known
      ? mergeCall(state, draft, part, known, result)
      : addSnapshotCall(state, draft, part, result !== undefined)
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
  if (result && !call.answered) settle(state, call, part, decisionOf(result.metadata))
  const approval = readApproval(part.approval) ?? call.approval
  if (result || !approval || isTerminal(call.state)) return undefined
  const asked = { toolCallId: part.id, toolName: part.name, input: { value: part.input }, approval }
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
