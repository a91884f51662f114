import type { JsonReader } from '../json/partial.js'
import {
  isTerminal,
  type MessagePart,
  type PendingApproval,
  type ReasoningPart,
  type ToolCallPart,
  type UIMessage,
} from '../messages.js'
import type { Interrupt } from '../protocol/events.js'
import { clear, frozen, omitUndefined, sameJson } from '../value.js'
import type { CallDraft, MessageDraft, PartDraft, ReasoningDraft } from './data.js'
import { disown } from './owned.js'
import type { ChatState } from './state.js'

/** The conversation as immutable messages. What has not changed since the last call keeps its identity. */
export function readMessages(state: ChatState): readonly UIMessage[] {
  const { published, dirty } = state
  const before = published.messages
  disown(state)
  const known = before?.length ?? 0
  let messages = before ?? []
  if (known < state.order.length) messages = messages.concat(state.order.slice(known).map(publishMessage))
  for (let draft = dirty.pop(); draft; draft = dirty.pop()) {
    draft.unpublished = false
    // After a change of order the list may hold removed messages, and all were published again above.
    if (!before) continue
    const message = publishMessage(draft)
    if (message === messages[draft.position]) continue
    if (messages === before) messages = before.slice()
    messages[draft.position] = message
  }
  published.messages = messages
  return messages
}

/** One message, or `undefined` for an unknown id. */
export function readMessage(state: ChatState, id: string): UIMessage | undefined {
  const draft = state.messages.get(id)
  disown(state)
  return draft && publishMessage(draft)
}

/** The ids of all messages in order; the same array until a message is added or removed. */
export function readMessageIds(state: ChatState): readonly string[] {
  state.published.ids ??= state.order.map((draft) => draft.id)
  return state.published.ids
}

/** Every call that waits for approval, in order; the same array until one of them changes. */
export function readPendingApprovals(state: ChatState): readonly PendingApproval[] {
  const { published, asked } = state
  const { pending: before, pendingChange } = published
  if (pendingChange === 'none') return before
  disown(state)
  // Of a thousand pending calls, most are unchanged: copies the list and publishes only what changed.
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

/** Open interrupts that are no tool approvals; the same array until one is added or removed. */
export function readInterrupts(state: ChatState): readonly Interrupt[] {
  const { published, interrupts } = state
  if (interrupts.size > 0 || published.interrupts.length > 0) {
    const now = [...interrupts.values()].filter((draft) => !draft.response).map((draft) => draft.interrupt)
    published.interrupts = keepIfSame(published.interrupts, now)
  }
  return published.interrupts
}

function keepIfSame<T>(before: readonly T[], now: readonly T[]): readonly T[] {
  return now.length === before.length && now.every((item, i) => item === before[i]) ? before : now
}

export function publishMessage(draft: MessageDraft): UIMessage {
  if (!draft.dirty && draft.published) return draft.published
  draft.shown ??= draft.published?.parts.slice() ?? []
  const { shown } = draft
  if (shown.length < draft.parts.length)
    for (const part of draft.parts.slice(shown.length)) shown.push(publishPart(part))
  for (let part = draft.stale.pop(); part; part = draft.stale.pop()) {
    part.stale = false
    shown[part.index] = publishPart(part)
  }
  draft.dirty = false
  const { id, role, metadata, createdAt } = draft
  const message: Draft<UIMessage> = { id, role, parts: shown.slice() }
  if (metadata) message.metadata = metadata
  if (createdAt !== undefined) message.createdAt = createdAt
  draft.published = message
  return message
}

/** Sets the published form of a message, whatever has changed; `undefined` rebuilds it from all parts. */
export function setPublished(draft: MessageDraft, published: UIMessage | undefined): void {
  for (const part of draft.stale) part.stale = false
  clear(draft.stale)
  draft.dirty = false
  draft.shown = undefined
  draft.published = published
}

/** Publishes a message that was rebuilt, keeping the identity of everything that turned out equal. */
export function publishRebuilt(draft: MessageDraft, before: UIMessage): void {
  const now = publishMessage(draft)
  const rebuilt = now.parts.map((part, i) => {
    const old = before.parts[i]
    return old && sameJson(part, old) ? old : part
  })
  const parts = keepIfSame(before.parts, rebuilt)
  const same = parts === before.parts && sameJson(now.metadata, before.metadata)
  setPublished(draft, same ? before : { ...now, parts })
}

function publishPart(draft: PartDraft): MessagePart {
  switch (draft.kind) {
    case 'fixed':
      return draft.part
    case 'call':
      return publishCall(draft)
    case 'text':
      draft.part ??= draft.owner.structured?.publish(draft) ?? { type: 'text', text: draft.text }
      return draft.part
    case 'reasoning':
      draft.part ??= publishReasoning(draft)
      return draft.part
    default:
      return draft satisfies never
  }
}

function publishReasoning({ id, text, encryptedValue, metadata }: ReasoningDraft): ReasoningPart {
  return omitUndefined({ type: 'reasoning' as const, id, text, encryptedValue, metadata })
}

/** A published object under construction. Assigning members one by one takes a tenth of the time of spreading them. */
type Draft<T> = { -readonly [Name in keyof T]: T[Name] }

function publishCall(call: CallDraft): ToolCallPart {
  call.part ??= makeCall(call)
  return call.part
}

/** A pending call always has an approval request. */
function publishAsked(call: CallDraft): PendingApproval {
  return publishCall(call) as PendingApproval
}

/** Arguments and other JSON longer than this (in characters) are not parsed out again for every delta. */
const LONG = 65_536
const grown = new WeakMap<JsonReader, { readonly length: number; readonly value: unknown }>()

/** Reading copies every open object. Long texts are read only after growing by a sixteenth; otherwise the cost is quadratic. */
export function growingValue(reader: JsonReader, length: number): unknown {
  const before = grown.get(reader)
  if (before && length > LONG && length < before.length * (17 / 16)) return before.value
  const { value } = reader
  grown.set(reader, { length, value })
  return value
}

/** The result of such a call may still come, so its state is not final. */
const interrupted = {
  message: 'Its result did not come: the tool may or may not have run.',
  code: 'interrupted',
}

function makeCall(call: CallDraft): ToolCallPart {
  const { id, name, reader, state, approval, output, error, metadata } = call
  const input = reader ? growingValue(reader, call.arguments.length) : call.input
  const part: Draft<ToolCallPart> = { type: 'tool-call', id, name, arguments: call.arguments, state }
  if (input !== undefined) part.input = input
  if (approval) part.approval = approval
  if (call.progress !== undefined && !isTerminal(state)) part.progress = call.progress
  if (output !== undefined) part.output = output
  if (error) part.error = error
  else if (call.interrupted && state === 'input-complete') part.error = interrupted
  if (call.providerExecuted) part.providerExecuted = true
  if (metadata) part.metadata = metadata
  return protectedCall(part)
}

/** Freezes a pending call, and any answer: the page cannot change what the user was shown or what they answered. */
export function protectedCall(part: ToolCallPart): ToolCallPart {
  frozen(part.state === 'approval-requested' ? part : part.approval)
  return part
}
