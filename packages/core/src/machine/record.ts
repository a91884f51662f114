import type { UIMessage } from '../messages.js'
import { retainMessages } from './cells.js'
import { loadMessage } from './load.js'
import { readMessages } from './read.js'
import type { ChatState, FinishedRun, QueuedMessage } from './state.js'
import { isRecord } from './value.js'

/**
 * What is kept of a conversation: what was said, what was answered and how far each answer got (in the messages' approvals), which
 * outputs of client tools the server has not had, and what waits to be said. Plain JSON.
 */
export interface ThreadRecord {
  readonly version: 1
  readonly messages: readonly UIMessage[]
  /** Ids of client-tool calls whose output was not sent. */
  readonly unsentOutputs: readonly string[]
  readonly queue: readonly QueuedMessage[]
  /** What the last run said when it ended well: calls it left to the client may still be run. */
  readonly run?: FinishedRun
  /** The AG-UI shared state. */
  readonly state?: unknown
}

export function readRecord(state: ChatState): ThreadRecord {
  const unsentOutputs = [...state.unsent].flatMap((item) =>
    item.kind === 'call' && item.outputSent === false ? [item.id] : [],
  )
  return {
    version: 1,
    messages: readMessages(state),
    unsentOutputs,
    queue: state.queue,
    ...(state.run.phase === 'idle' && state.run.last && { run: state.run.last }),
    ...(state.shared !== undefined && { state: state.shared }),
  }
}

/** Whether a stored value has the form of a record. What a message holds is as trustworthy as where it was stored. */
export function isThreadRecord(value: unknown): value is ThreadRecord {
  if (!isRecord(value) || value.version !== 1) return false
  const { messages, unsentOutputs, queue } = value
  if (!Array.isArray(unsentOutputs) || !unsentOutputs.every((id) => typeof id === 'string')) return false
  if (!Array.isArray(queue) || !queue.every((item) => isRecord(item) && isMessage(item.message))) return false
  return Array.isArray(messages) && messages.every(isMessage)
}

function isMessage(value: unknown): value is UIMessage {
  if (!isRecord(value) || typeof value.id !== 'string' || !Array.isArray(value.parts)) return false
  const { role, parts } = value
  if (role !== 'user' && role !== 'assistant' && role !== 'system') return false
  return parts.every((part) => isRecord(part) && typeof part.type === 'string' && hasItsText(part))
}

function hasItsText(part: Record<string, unknown>): boolean {
  if (part.type === 'text' || part.type === 'reasoning') return typeof part.text === 'string'
  if (part.type !== 'tool-call') return true
  return [part.id, part.name, part.arguments, part.state].every((member) => typeof member === 'string')
}

/** Takes a record over in the place of what is there. Nothing runs and nothing is sent because of it. */
export function restoreRecord(state: ChatState, record: ThreadRecord): void {
  retainMessages(state, () => false)
  if (state.run.phase === 'idle') state.run = { phase: 'idle', ...(record.run && { last: record.run }) }
  for (const message of record.messages) if (!state.messages.has(message.id)) loadMessage(state, message)
  const outputs = new Set(record.unsentOutputs)
  for (const call of state.calls.values()) {
    if (!outputs.has(call.id)) continue
    call.outputSent = false
    state.unsent.add(call)
  }
  state.queue = record.queue
  if (record.state !== undefined) state.shared = record.state
  state.owed = 'change'
}
