import type { UIMessage } from '../messages.js'
import type { EventOf } from '../protocol/events.js'
import {
  addDone,
  addFixed,
  addMessage,
  addReasoning,
  addText,
  grow,
  renameMessage,
  touch,
  touchMessage,
} from './cells.js'
import type { Outcome, StepTable } from './effects.js'
import { patched } from './patch.js'
import type { ChatState, MessageCell, ReasoningCell } from './state.js'
import { subagentIdOf, subagentMetadata } from './subagents.js'
import { isRecord, known, ours, string, withOwn } from './value.js'

interface Attributed {
  readonly subagentRunId?: string
}

/** The steps that build what is said: texts, reasoning, activities. */
export const messageSteps = {
  'user-message'(state, { message }) {
    if (state.messages.has(message.id)) return 'illegal-step'
    const cell = addMessage(state, message)
    for (const part of message.parts) addDone(state, cell, { ...part })
    return undefined
  },
  TEXT_MESSAGE_START(state, event) {
    const { messageId: id, role = 'assistant', name } = event
    const cell =
      role === 'assistant'
        ? assistantMessage(state, id, event)
        : newMessage(state, id, role === 'user' ? role : 'system', event)
    if (!cell) return 'illegal-step'
    cell.streaming = true
    if (name !== undefined || role === 'developer') {
      const speaker = known({ name, role: role === 'developer' ? role : undefined })
      cell.metadata = withOwn(cell.metadata, { ...ours(cell.metadata), ...speaker })
    }
    describe(state, cell, event)
    return undefined
  },
  TEXT_MESSAGE_CONTENT(state, event) {
    const { messageId, delta } = event
    const cell = state.messages.get(messageId)
    if (!cell?.streaming) return cell ? 'illegal-step' : 'unknown-id'
    describe(state, cell, event)
    if (delta === '') return undefined
    cell.text ??= addText(state, cell, '')
    cell.text.text += delta
    grow(state, cell.text)
    return undefined
  },
  TEXT_MESSAGE_END(state, event) {
    const cell = state.messages.get(event.messageId)
    if (!cell?.streaming) return cell ? 'illegal-step' : 'unknown-id'
    cell.streaming = false
    describe(state, cell, event)
    return undefined
  },
  /** Reasoning belongs to the message it names, else to the assistant message that follows it. */
  REASONING_MESSAGE_START(state, event) {
    const { messageId: id, metadata } = event
    if (state.reasoning.has(id)) return undefined
    const hint = string(ours(metadata).messageId)
    const owner =
      hint === undefined ? provisionalMessage(state, id, event) : assistantMessage(state, hint, event)
    if (!owner) return 'illegal-step'
    addReasoning(state, owner, known({ id, text: '', metadata }))
    return undefined
  },
  REASONING_MESSAGE_CONTENT(state, { messageId, delta, metadata }) {
    const cell = state.reasoning.get(messageId)
    if (!cell) return 'unknown-id'
    if (metadata) describeReasoning(state, cell, metadata)
    if (delta === '') return undefined
    cell.text += delta
    grow(state, cell)
    return undefined
  },
  REASONING_MESSAGE_END(state, { messageId, metadata }) {
    const cell = state.reasoning.get(messageId)
    if (!cell) return 'unknown-id'
    if (metadata) describeReasoning(state, cell, metadata)
    return undefined
  },
  /** Opaque content of the model's provider, to be sent back as it came with the reasoning or call it belongs to. */
  REASONING_ENCRYPTED_VALUE(state, { subtype, entityId, encryptedValue }) {
    const isMessage = subtype === 'message'
    const part = isMessage ? state.reasoning.get(entityId) : state.calls.get(entityId)
    const cell = part ?? (isMessage && state.messages.get(entityId))
    if (!cell) return undefined
    if (part?.kind === 'reasoning') part.encryptedValue = encryptedValue
    else cell.metadata = withOwn(cell.metadata, { ...ours(cell.metadata), encryptedValue })
    if (part) touch(state, part)
    else if ('parts' in cell) touchMessage(state, cell)
    return undefined
  },
  ACTIVITY_SNAPSHOT(state, event) {
    const { messageId: id, activityType, content, replace } = event
    const known = state.messages.get(id)
    if (known && !isActivity(known)) return 'illegal-step'
    if (known && replace === false) return undefined
    const cell = known ?? newMessage(state, id, 'assistant', event)
    if (!cell) return 'illegal-step'
    setActivity(state, cell, activityType, content)
    describe(state, cell, event)
    return undefined
  },
  ACTIVITY_DELTA(state, { messageId, activityType, patch }) {
    const cell = state.messages.get(messageId)
    const part = cell?.parts[0]
    if (!cell || part?.kind !== 'fixed' || part.part.type !== 'data') return undefined
    return patched(state, part.part.data, patch, (data) => setActivity(state, cell, activityType, data))
  },
} satisfies Partial<StepTable>

/** `CUSTOM source`: where something comes from that this message says. Nothing where the value is not one: it is the application's own. */
export function addSource(state: ChatState, event: EventOf<'CUSTOM'>): Outcome {
  const { messageId, id, url, title, metadata }: Record<string, unknown> = isRecord(event.value)
    ? event.value
    : {}
  if (typeof messageId !== 'string' || typeof id !== 'string') return undefined
  const owner = assistantMessage(state, messageId, event)
  if (!owner) return 'illegal-step'
  const isKnown = owner.parts.some(({ part }) => part?.type === 'source' && part.id === id)
  const more = { url: string(url), title: string(title), metadata: isRecord(metadata) ? metadata : undefined }
  if (!isKnown) addFixed(state, owner, known({ type: 'source' as const, id, ...more }))
  return []
}

/** A message whose id is new, marked with the subagent that speaks. */
function newMessage(
  state: ChatState,
  id: string,
  role: UIMessage['role'],
  event: Attributed,
): MessageCell | undefined {
  const metadata = subagentMetadata(state, event)
  return state.messages.has(id) ? undefined : addMessage(state, { id, role, ...(metadata && { metadata }) })
}

/**
 * The assistant message with that id, made where there is none; `undefined` where the id belongs to what the person said. Reasoning
 * of the same speaker that came before it becomes its beginning.
 */
export function assistantMessage(state: ChatState, id: string, event: Attributed): MessageCell | undefined {
  const found = state.messages.get(id)
  if (found) return found.role === 'assistant' ? found : undefined
  const last = state.order.at(-1)
  if (!isOpenTo(last, event)) return newMessage(state, id, 'assistant', event)
  renameMessage(state, last, id)
  return last
}

/** Whether a message holds only reasoning so far, of the one who speaks now. */
function isOpenTo(cell: MessageCell | undefined, { subagentRunId }: Attributed): cell is MessageCell {
  return cell?.provisional === true && subagentIdOf(cell.metadata) === subagentRunId
}

/** The message that reasoning waits in for the message it belongs to. */
function provisionalMessage(state: ChatState, id: string, event: Attributed): MessageCell | undefined {
  const last = state.order.at(-1)
  if (isOpenTo(last, event)) return last
  const cell = newMessage(state, id, 'assistant', event)
  if (cell) cell.provisional = true
  return cell
}

/** Merges metadata key by key, the last write winning (AG-UI 1.0, metadata). */
function describe(
  state: ChatState,
  cell: MessageCell,
  { metadata }: { readonly metadata?: Record<string, unknown> },
): void {
  if (!metadata) return
  cell.metadata = { ...cell.metadata, ...metadata }
  touchMessage(state, cell)
}

function describeReasoning(state: ChatState, cell: ReasoningCell, metadata: Record<string, unknown>): void {
  cell.metadata = { ...cell.metadata, ...metadata }
  touch(state, cell)
}

/** Activities have ids of their own kind in AG-UI: one that is also the id of a message must not overwrite it. */
function isActivity({ role, parts: [first] }: MessageCell): boolean {
  return role === 'assistant' && first?.kind === 'fixed' && first.part.type === 'data'
}

function setActivity(state: ChatState, cell: MessageCell, name: string, data: unknown): undefined {
  const part = { type: 'data', name, data } as const
  const [first] = cell.parts
  if (first?.kind === 'fixed') {
    first.part = part
    touch(state, first)
  } else addFixed(state, cell, part)
}
