import type {
  ActivityDeltaEvent,
  ActivitySnapshotEvent,
  ReasoningEncryptedValueEvent,
  ReasoningMessageContentEvent,
  ReasoningMessageEndEvent,
  ReasoningMessageStartEvent,
  TextMessageContentEvent,
  TextMessageEndEvent,
  TextMessageStartEvent,
} from '../protocol/events.js'
import {
  addFixed,
  addMessage,
  addReasoning,
  addText,
  growPart,
  renameMessage,
  touchMessage,
  touchPart,
} from './cells.js'
import { type Effect, none, warn } from './effects.js'
import type { ChatState, MessageCell } from './state.js'
import { mergeMetadata, ours, string } from './value.js'

interface Attributed {
  readonly subagentRunId?: string
}

/** Who speaks, where it is a subagent: kept on what it builds. */
export function subagentMetadata(state: ChatState, event: Attributed): Record<string, unknown> | undefined {
  const id = event.subagentRunId
  if (id === undefined) return undefined
  const name = state.subagents.get(id)
  return { subagent: { id, ...(name !== undefined && { name }) } }
}

/**
 * The assistant message with that id, made where there is none; `undefined` where the id belongs to what the person said. Reasoning
 * that came before it becomes its beginning.
 */
export function assistantMessage(state: ChatState, id: string, event: Attributed): MessageCell | undefined {
  const known = state.messages.get(id)
  if (known) return known.role === 'assistant' ? known : undefined
  const last = state.order.at(-1)
  if (last?.provisional) {
    renameMessage(state, last, id)
    return last
  }
  return addMessage(state, { id, role: 'assistant', ...withMetadata(subagentMetadata(state, event)) })
}

function withMetadata(metadata: Record<string, unknown> | undefined): { metadata?: Record<string, unknown> } {
  return metadata ? { metadata } : {}
}

export function startText(state: ChatState, event: TextMessageStartEvent): readonly Effect[] {
  const role = event.role ?? 'assistant'
  const cell =
    role === 'assistant' ? assistantMessage(state, event.messageId, event) : plainMessage(state, event, role)
  if (!cell) return taken(event.messageId)
  cell.streaming = true
  return describe(state, cell, event.metadata)
}

/** Words of another role that the server streams: only ever a message of its own. */
function plainMessage(
  state: ChatState,
  { messageId }: TextMessageStartEvent,
  role: string,
): MessageCell | undefined {
  if (state.messages.has(messageId)) return undefined
  return addMessage(state, { id: messageId, role: role === 'user' ? 'user' : 'system' })
}

function taken(id: string): readonly Effect[] {
  return warn(
    'illegal-step',
    `The message "${id}" exists already and is not the assistant's; it stays as it is.`,
  )
}

export function growText(state: ChatState, event: TextMessageContentEvent): readonly Effect[] {
  const cell = state.messages.get(event.messageId)
  if (!cell) return warn('unknown-id', `Text came for the unknown message "${event.messageId}".`)
  if (!cell.streaming)
    return warn('illegal-step', `Text came for the message "${event.messageId}", which has ended.`)
  if (event.delta === '') return none
  cell.text ??= addText(state, cell, '')
  cell.text.text += event.delta
  growPart(state, cell, cell.text)
  return none
}

export function endText(state: ChatState, event: TextMessageEndEvent): readonly Effect[] {
  const cell = state.messages.get(event.messageId)
  if (!cell) return warn('unknown-id', `The unknown message "${event.messageId}" ended.`)
  if (!cell.streaming) return warn('illegal-step', `The message "${event.messageId}" ended a second time.`)
  cell.streaming = false
  return describe(state, cell, event.metadata)
}

function describe(
  state: ChatState,
  cell: MessageCell,
  metadata: Record<string, unknown> | undefined,
): readonly Effect[] {
  if (!metadata) return none
  cell.metadata = mergeMetadata(cell.metadata, metadata)
  touchMessage(state, cell)
  return none
}

/** Reasoning belongs to the message it names, else to the assistant message that follows it. */
export function startReasoning(state: ChatState, event: ReasoningMessageStartEvent): readonly Effect[] {
  if (state.reasoning.has(event.messageId)) return none
  const hint = string(ours(event.metadata).messageId)
  const owner = hint === undefined ? provisionalMessage(state, event) : assistantMessage(state, hint, event)
  if (!owner) return taken(event.messageId)
  addReasoning(state, owner, {
    id: event.messageId,
    text: '',
    encryptedValue: undefined,
    metadata: event.metadata,
  })
  return none
}

function provisionalMessage(state: ChatState, event: ReasoningMessageStartEvent): MessageCell | undefined {
  const last = state.order.at(-1)
  if (last?.provisional) return last
  if (state.messages.has(event.messageId)) return undefined
  const cell = addMessage(state, {
    id: event.messageId,
    role: 'assistant',
    ...withMetadata(subagentMetadata(state, event)),
  })
  cell.provisional = true
  return cell
}

export function growReasoning(state: ChatState, event: ReasoningMessageContentEvent): readonly Effect[] {
  const cell = state.reasoning.get(event.messageId)
  if (!cell) return warn('unknown-id', `Reasoning came for the unknown message "${event.messageId}".`)
  if (event.delta === '') return none
  cell.text += event.delta
  growPart(state, cell.owner, cell)
  return none
}

export function endReasoning(state: ChatState, event: ReasoningMessageEndEvent): readonly Effect[] {
  const cell = state.reasoning.get(event.messageId)
  if (!cell) return warn('unknown-id', `The unknown reasoning "${event.messageId}" ended.`)
  if (!event.metadata) return none
  cell.metadata = mergeMetadata(cell.metadata, event.metadata)
  touchPart(state, cell.owner, cell)
  return none
}

/** Opaque content of the model's provider, to be sent back as it came with the reasoning or call it belongs to. */
export function keepEncrypted(state: ChatState, event: ReasoningEncryptedValueEvent): readonly Effect[] {
  const reasoning = state.reasoning.get(event.entityId)
  if (event.subtype === 'message' && reasoning) {
    reasoning.encryptedValue = event.encryptedValue
    touchPart(state, reasoning.owner, reasoning)
    return none
  }
  const cell =
    event.subtype === 'message' ? state.messages.get(event.entityId) : state.calls.get(event.entityId)
  if (!cell) return none
  cell.metadata = {
    ...cell.metadata,
    countersign: { ...ours(cell.metadata), encryptedValue: event.encryptedValue },
  }
  if ('owner' in cell) touchPart(state, cell.owner, cell)
  else touchMessage(state, cell)
  return none
}

export function snapshotActivity(state: ChatState, event: ActivitySnapshotEvent): readonly Effect[] {
  const known = state.messages.get(event.messageId)
  if (known && !isActivity(known)) return taken(event.messageId)
  if (known && event.replace === false) return none
  const cell = known ?? addMessage(state, { id: event.messageId, role: 'assistant' })
  setActivity(state, cell, event.activityType, event.content)
  return describe(state, cell, event.metadata)
}

/** Activities have ids of their own kind in AG-UI: one that is also the id of a message must not overwrite it. */
function isActivity({ role, parts: [first] }: MessageCell): boolean {
  return role === 'assistant' && first?.kind === 'fixed' && first.part.type === 'data'
}

export function patchActivity(state: ChatState, event: ActivityDeltaEvent): readonly Effect[] {
  const cell = state.messages.get(event.messageId)
  const part = cell?.parts[0]
  if (!cell || part?.kind !== 'fixed' || part.part.type !== 'data') return none
  if (!state.applyPatch)
    return warn('patch-failed', 'An activity delta came, but no `statePatch` is configured.')
  try {
    setActivity(state, cell, event.activityType, state.applyPatch(part.part.data, event.patch))
    return none
  } catch (error) {
    return warn('patch-failed', `The delta of activity "${event.messageId}" does not apply: ${String(error)}`)
  }
}

function setActivity(state: ChatState, cell: MessageCell, name: string, data: unknown): void {
  const part = { type: 'data', name, data } as const
  const first = cell.parts[0]
  if (first?.kind !== 'fixed') {
    addFixed(state, cell, part)
    return
  }
  first.part = part
  touchPart(state, cell, first)
}
