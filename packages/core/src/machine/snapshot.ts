import {
  isTerminal,
  type MessagePart,
  type ToolCallApproval,
  type ToolCallPart,
  type UIMessage,
} from '../messages.js'
import type { MessagesSnapshotEvent } from '../protocol/events.js'
import { changed, sameJson } from '../value.js'
import { askApproval, readApproval } from './approvals.js'
import {
  addDone,
  addMessage,
  dropPart,
  endOf,
  keepParts,
  markStale,
  renameMessage,
  retainMessages,
  touchMessage,
} from './cells.js'
import { type Effect, effectsOf, type Outcome } from './effects.js'
import { foldMessages } from './fold.js'
import { loadCall, settleLoaded } from './load.js'
import { nameOf } from './message-events.js'
import { publishMessage, publishRebuilt, setPublished } from './read.js'
import type { CallCell, ChatState, MessageCell, PartCell } from './state.js'
import { settle } from './tool-calls.js'

/**
 * MESSAGES_SNAPSHOT: the server's view of the conversation replaces ours message by message, each in the place it has here; what is new
 * comes at the end (AG-UI 1.0, state). What it does not change keeps its identity. Calls we know keep what the person was shown and answered; a snapshot answers nothing.
 */
export function applySnapshot(state: ChatState, event: MessagesSnapshotEvent): readonly Effect[] {
  const messages = withOwnIds(foldMessages(event.messages))
  const carries = new Set(event.messages.map((message) => message.role))
  const ids = new Set(messages.map((message) => message.id))
  const isRunning = state.run.phase !== 'idle'
  const calls = new Set(
    messages.flatMap(({ parts }) => parts.map((part) => part.type === 'tool-call' && part.id)),
  )
  /** While its run is open a snapshot may be older than the stream: what is still under way is not dropped. */
  const isUnderWay = (cell: MessageCell) =>
    isRunning &&
    cell.turn === state.turn &&
    (cell.streaming || cell.parts.some((part) => isOpen(state, part) && !calls.has(part.id)))
  const underWay = new Set(state.order.filter((cell) => !ids.has(cell.id) && isUnderWay(cell)))
  const adrift = takeOpen(
    state,
    (call) => !ids.has(call.owner.id) && calls.has(call.id) && (isRunning || call.approval),
  )
  const keepsThoughts = !carries.has('reasoning')
  const isGone = (cell: MessageCell) => !ids.has(cell.id) && !underWay.has(cell)
  if (keepsThoughts) for (const cell of state.order) if (isGone(cell)) leaveThoughts(state, cell)
  retainMessages(state, (cell) => !isGone(cell) || keptWithout(cell, carries))
  const outcomes = messages.flatMap((message) => mergeMessage(state, message, adrift, keepsThoughts))
  for (const call of left(adrift)) dropPart(state, call)
  if (state.run.phase !== 'idle') state.run = changed(state.run, { from: endOf(state) })
  return outcomes.flatMap((outcome) => effectsOf(event, outcome))
}

/** Of two messages with one id the later one is another message, under the next free name, as in a stream: no text is lost. */
function withOwnIds(messages: readonly UIMessage[]): readonly UIMessage[] {
  const times = new Map<string, number>()
  const unused = (id: string): string => {
    const n = (times.get(id) ?? 0) + 1
    times.set(id, n)
    return n === 1 ? id : unused(nameOf(id, n))
  }
  return messages.map((message) => changed(message, { id: unused(message.id) }))
}

/** Calls by id, in order, until each was found in the snapshot. */
type Calls = Map<string, CallCell[]>

function byId(calls: Iterable<CallCell>): Calls {
  const found: Calls = new Map()
  for (const call of calls) {
    const same = found.get(call.id)
    if (same) same.push(call)
    else found.set(call.id, [call])
  }
  return found
}

function left(calls: Calls): CallCell[] {
  return [...calls.values()].flat()
}

function isOpen(state: ChatState, part: PartCell): part is CallCell {
  return part.kind === 'call' && state.open.has(part)
}

/** Open calls of messages the snapshot does not have: a server may give the message of a call another id than its stream did. */
function takeOpen(state: ChatState, isTold: (call: CallCell) => unknown): Calls {
  const calls = [...state.open].filter(isTold)
  const taken = new Set<PartCell>(calls)
  for (const owner of new Set(calls.map((call) => call.owner))) {
    keepParts(
      state,
      owner,
      owner.parts.filter((part) => !taken.has(part)),
    )
  }
  return byId(calls)
}

/** Activities and bare reasoning stay unless the snapshot tells of that kind at all. */
function keptWithout(cell: MessageCell, carries: ReadonlySet<string>): boolean {
  const only = (test: (part: PartCell) => boolean) => cell.parts.length > 0 && cell.parts.every(test)
  if (only((part) => part.kind === 'fixed' && part.part.type === 'data')) return !carries.has('activity')
  return only(isThought) && !carries.has('reasoning')
}

function isThought({ kind }: PartCell): boolean {
  return kind === 'reasoning'
}

/** Of a message that the snapshot does not have, the reasoning stays where the snapshot tells of none: most servers keep none. */
function leaveThoughts(state: ChatState, cell: MessageCell): void {
  const thoughts = cell.parts.filter(isThought)
  const [first] = thoughts
  if (first?.kind !== 'reasoning' || state.messages.has(first.id)) return
  for (const part of cell.parts) if (!isThought(part)) dropPart(state, part)
  keepParts(state, cell, thoughts)
  const subagent = cell.metadata?.subagent
  Object.assign(cell, { text: undefined, streaming: false })
  cell.metadata = subagent === undefined ? undefined : { subagent }
  renameMessage(state, cell, first.id)
}

function mergeMessage(state: ChatState, told: UIMessage, adrift: Calls, keepsThoughts: boolean): Outcome[] {
  const cell = state.messages.get(told.id)
  if (!cell) return fillMessage(state, addMessage(state, told), told, adrift)
  const before = publishMessage(cell)
  const thoughts = keepsThoughts ? before.parts.filter(({ type }) => type === 'reasoning') : []
  const message = { ...told, parts: [...thoughts, ...withOpenText(cell, told.parts)] }
  if (sameJson(before, message)) return []
  const textOpen = cell.text !== undefined
  const calls = byId(cell.parts.filter((part) => part.kind === 'call'))
  for (const part of cell.parts) if (part.kind !== 'call') dropPart(state, part)
  cell.parts = []
  cell.sources = undefined
  setPublished(cell, undefined)
  cell.metadata = message.metadata && { ...message.metadata }
  touchMessage(state, cell)
  const outcomes = fillMessage(state, cell, message, adrift, calls)
  // A call the snapshot no longer knows keeps its place at the end while a person's answer hangs on it.
  for (const call of left(calls)) {
    if ((call.approval || state.run.phase !== 'idle') && !isTerminal(call.state)) keepCall(cell, call)
    else dropPart(state, call)
  }
  const last = cell.parts.at(-1)
  cell.text = textOpen && last?.kind === 'text' ? last : undefined
  publishRebuilt(cell, before)
  return outcomes
}

/** The parts that a snapshot has of a message, with what it does not have yet of a text that is being written. */
function withOpenText(cell: MessageCell, told: readonly MessagePart[]): readonly MessagePart[] {
  const tail = textOf(cell.parts).slice(textOf(told).length)
  if (!cell.streaming || !cell.text || tail === '' || textOf(told) + tail !== textOf(cell.parts)) return told
  const last = told.at(-1)
  return last?.type === 'text'
    ? [...told.slice(0, -1), { ...last, text: last.text + tail }]
    : [...told, { type: 'text', text: tail }]
}

function textOf(parts: readonly (PartCell | MessagePart)[]): string {
  return parts.map((part) => ('text' in part && !('id' in part) ? part.text : '')).join('')
}

function fillMessage(
  state: ChatState,
  cell: MessageCell,
  message: UIMessage,
  adrift: Calls,
  calls: Calls = new Map(),
): Outcome[] {
  const results = new Set(message.parts.map((part) => part.type === 'tool-result' && part.toolCallId))
  return message.parts.map((part) => {
    if (part.type !== 'tool-call') {
      addDone(state, cell, part)
      return undefined
    }
    const known = calls.get(part.id)?.shift() ?? adrift.get(part.id)?.shift()
    const answered = results.has(part.id) && isTerminal(part.state)
    return known
      ? mergeCall(state, cell, part, known, answered)
      : addSnapshotCall(state, cell, part, answered)
  })
}

function mergeCall(
  state: ChatState,
  owner: MessageCell,
  part: ToolCallPart,
  call: CallCell,
  answered: boolean,
): Outcome {
  keepCall(owner, call)
  if (answered && !call.answered) settle(state, call, part)
  const approval = readApproval(part.approval) ?? call.approval
  if (answered || !approval || isTerminal(call.state)) return undefined
  const asked = { toolCallId: part.id, toolName: part.name, input: { value: part.input }, approval }
  return askApproval(state, asked, call)
}

/** A call first heard of in a snapshot: its request is shown, but no answer to an open one is taken from there. */
function addSnapshotCall(
  state: ChatState,
  owner: MessageCell,
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

/** A question whose call has its result: nothing of it is under way any more. */
function settledRecord({ delivery, ...approval }: ToolCallApproval): ToolCallApproval {
  return delivery === undefined ? approval : { ...approval, delivery: 'settled' }
}

/** Puts a known call at the end of a message that is being rebuilt. */
function keepCall(owner: MessageCell, call: CallCell): void {
  call.owner = owner
  call.index = owner.parts.length
  owner.parts.push(call)
  // Where it was before it may have been noted already.
  call.stale = false
  markStale(call)
}
