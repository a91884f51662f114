import type { JsonReader } from '../json/partial.js'
import type { MessagePart, PendingApproval, ReasoningPart, ToolCallPart, UIMessage } from '../messages.js'
import type { Interrupt } from '../protocol/events.js'
import { clear, frozen, omitUndefined, sameJson } from '../value.js'
import { disown } from './owned.js'
import type { CallCell, ChatState, MessageCell, PartCell, ReasoningCell } from './state.js'

/** The conversation as immutable messages. Messages and parts that did not change since the last call are the same objects. */
export function readMessages(state: ChatState): readonly UIMessage[] {
  const { published, dirty } = state
  const before = published.messages
  disown(state)
  const known = before?.length ?? 0
  let messages = before ?? []
  if (known < state.order.length) messages = messages.concat(state.order.slice(known).map(publishMessage))
  for (let cell = dirty.pop(); cell; cell = dirty.pop()) {
    cell.unread = false
    // Where the order is another, what is noted may be gone, and all was read anew.
    if (!before) continue
    const message = publishMessage(cell)
    if (message === messages[cell.position]) continue
    if (messages === before) messages = before.slice()
    messages[cell.position] = message
  }
  published.messages = messages
  return messages
}

/** One message, or `undefined` for an unknown id. */
export function readMessage(state: ChatState, id: string): UIMessage | undefined {
  const cell = state.messages.get(id)
  disown(state)
  return cell && publishMessage(cell)
}

/** The ids of all messages in order; the same array while none comes or goes. */
export function readMessageIds(state: ChatState): readonly string[] {
  state.published.ids ??= state.order.map((cell) => cell.id)
  return state.published.ids
}

/** Every call that waits for the person, in order; the same array while nothing about them changes. */
export function readPendingApprovals(state: ChatState): readonly PendingApproval[] {
  const { published, asked } = state
  const { pending: before, pendingChange } = published
  if (pendingChange === 'none') return before
  disown(state)
  // Of a thousand that wait nearly all are what they were: copies, and a look only at those that are not.
  if (pendingChange === 'added')
    published.pending = before.concat(asked.slice(before.length).map(publishAsked))
  else if (pendingChange === 'any') published.pending = keepIfSame(before, asked.map(publishAsked))
  else published.pending = without(before, pendingChange)
  published.pendingChange = 'none'
  return published.pending
}

function without<T>(items: readonly T[], at: number): readonly T[] {
  const left = items.slice()
  left.splice(at, 1)
  return left
}

/** Open questions that concern no tool call; the same array while none comes or goes. */
export function readInterrupts(state: ChatState): readonly Interrupt[] {
  const { published, interrupts } = state
  if (interrupts.size > 0 || published.interrupts.length > 0) {
    const now = [...interrupts.values()].filter((cell) => !cell.response).map((cell) => cell.interrupt)
    published.interrupts = keepIfSame(published.interrupts, now)
  }
  return published.interrupts
}

function keepIfSame<T>(before: readonly T[], now: readonly T[]): readonly T[] {
  return now.length === before.length && now.every((item, i) => item === before[i]) ? before : now
}

export function publishMessage(cell: MessageCell): UIMessage {
  if (!cell.dirty && cell.published) return cell.published
  cell.shown ??= cell.published?.parts.slice() ?? []
  const { shown } = cell
  if (shown.length < cell.parts.length)
    for (const part of cell.parts.slice(shown.length)) shown.push(publishPart(part))
  for (let part = cell.stale.pop(); part; part = cell.stale.pop()) {
    part.stale = false
    shown[part.index] = publishPart(part)
  }
  cell.dirty = false
  const { id, role, metadata, createdAt } = cell
  const message: Draft<UIMessage> = { id, role, parts: shown.slice() }
  if (metadata) message.metadata = metadata
  if (createdAt !== undefined) message.createdAt = createdAt
  cell.published = message
  return message
}

/** Sets what a message has published, whatever has changed; `undefined` has it made of all parts anew. */
export function setPublished(cell: MessageCell, published: UIMessage | undefined): void {
  for (const part of cell.stale) part.stale = false
  clear(cell.stale)
  cell.dirty = false
  cell.shown = undefined
  cell.published = published
}

/** Publishes a message that was built anew, keeping of its last form whatever came out the same. */
export function publishRebuilt(cell: MessageCell, before: UIMessage): void {
  const now = publishMessage(cell)
  const rebuilt = now.parts.map((part, i) => {
    const old = before.parts[i]
    return old && sameJson(part, old) ? old : part
  })
  const parts = keepIfSame(before.parts, rebuilt)
  const same = parts === before.parts && sameJson(now.metadata, before.metadata)
  setPublished(cell, same ? before : { ...now, parts })
}

function publishPart(cell: PartCell): MessagePart {
  switch (cell.kind) {
    case 'fixed':
      return cell.part
    case 'call':
      return publishCall(cell)
    case 'text':
      cell.part ??= { type: 'text', text: cell.text }
      return cell.part
    case 'reasoning':
      cell.part ??= publishReasoning(cell)
      return cell.part
    default:
      return cell satisfies never
  }
}

function publishReasoning({ id, text, encryptedValue, metadata }: ReasoningCell): ReasoningPart {
  return omitUndefined({ type: 'reasoning' as const, id, text, encryptedValue, metadata })
}

/** What is published, while it is made. Members one by one, which costs an engine a tenth of copying those that are known. */
type Draft<T> = { -readonly [Name in keyof T]: T[Name] }

/** The published form of one call. */
function publishCall(call: CallCell): ToolCallPart {
  call.part ??= makeCall(call)
  return call.part
}

/** A call among those asked about has its question. */
function publishAsked(call: CallCell): PendingApproval {
  return publishCall(call) as PendingApproval
}

/** Arguments longer than this, in characters, are not read again for every piece. */
const LONG = 65_536
const grown = new WeakMap<JsonReader, { readonly length: number; readonly value: unknown }>()

/** Reading the value copies every open object. Long arguments are read only each time they have grown by a sixteenth, or the cost would be quadratic. */
function growingInput(reader: JsonReader, length: number): unknown {
  const before = grown.get(reader)
  if (before && length > LONG && length < before.length * (17 / 16)) return before.value
  const { value } = reader
  grown.set(reader, { length, value })
  return value
}

function makeCall(call: CallCell): ToolCallPart {
  const { id, name, reader, state, approval, output, error, metadata } = call
  const input = reader ? growingInput(reader, call.arguments.length) : call.input
  const part: Draft<ToolCallPart> = { type: 'tool-call', id, name, arguments: call.arguments, state }
  if (input !== undefined) part.input = input
  if (approval) part.approval = approval
  if (output !== undefined) part.output = output
  if (error) part.error = error
  if (call.providerExecuted) part.providerExecuted = true
  if (metadata) part.metadata = metadata
  return protectedCall(part)
}

/** A call with what the person is shown before they answer, and with the answer: it is as it was asked and given, whatever a page does. */
export function protectedCall(part: ToolCallPart): ToolCallPart {
  frozen(part.state === 'approval-requested' ? part : part.approval)
  return part
}
