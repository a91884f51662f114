import { CountersignError } from '../errors.js'
import { isTerminal, type ToolCallPart, type UIMessage } from '../messages.js'
import { isRecord } from '../value.js'
import { addCall, addDone, addMessage } from './cells.js'
import { protectedCall, setPublished } from './read.js'
import { incomplete } from './runs.js'
import type { CallCell, ChatState, MessageCell } from './state.js'
import { answerHere } from './tool-calls.js'
import { isToolCallState } from './transitions.js'

/**
 * The messages, if that is what they are. For what an application hands in: a mistake is told before anything changes.
 *
 * @throws CountersignError `invalid-argument` for anything else than a list of UI messages, each with `id`, `role` and `parts`, and an `id`
 * of its own.
 */
export function checkMessages(messages: readonly UIMessage[]): readonly UIMessage[] {
  const at = Array.isArray(messages) ? messages.findIndex((message) => !isMessage(message)) : 0
  if (at < 0) {
    const again = repeatOf(messages)
    if (!again) return messages
    const { at, id, first } = again
    const message = `messages[${at}]: its id "${id}" is that of messages[${first}]. Give each an id of its own. Nothing was changed.`
    throw new CountersignError('invalid-argument', message, again)
  }
  const message = `messages[${at}]: not a list of messages, each with id, role and parts of our types. Those of the AI SDK: fromAiSdkMessages. Nothing was changed.`
  throw new CountersignError('invalid-argument', message, { at })
}

/** The first message that has the id of one before it. */
export function repeatOf(
  messages: readonly UIMessage[],
): { readonly at: number; readonly id: string; readonly first: number } | undefined {
  const places = new Map<string, number>()
  for (const [at, { id }] of messages.entries()) {
    const first = places.get(id)
    if (first !== undefined) return { at, id, first }
    places.set(id, at)
  }
  return undefined
}

/** Whether a value has the form of a message. */
export function isMessage(value: unknown): value is UIMessage {
  if (!isRecord(value) || typeof value.id !== 'string' || !Array.isArray(value.parts)) return false
  const { role, parts } = value
  if (role !== 'user' && role !== 'assistant' && role !== 'system') return false
  return parts.every((part) => isRecord(part) && isPart(part))
}

function isPart(part: Record<string, unknown>): boolean {
  if (part.type === 'text' || part.type === 'reasoning') return typeof part.text === 'string'
  if (part.type === 'file') return isRecord(part.source)
  if (part.type !== 'tool-call') return /^(source|data|tool-result)$/.test(String(part.type))
  const { id, name, state, approval } = part
  const named = [id, name, part.arguments].every((member) => typeof member === 'string')
  return named && isToolCallState(state) && (approval === undefined || isApproval(approval))
}

function isApproval(value: unknown): boolean {
  if (!isRecord(value)) return false
  const { id, options, approved } = value
  return (
    typeof id === 'string' &&
    Array.isArray(options) &&
    (approved === undefined || typeof approved === 'boolean')
  )
}

/** Takes over finished messages; of two with one id the first counts. */
export function loadMessages(state: ChatState, messages: readonly UIMessage[]): void {
  for (const message of messages) if (!state.messages.has(message.id)) loadMessage(state, message)
}

/**
 * Takes over a finished message: from storage, from the application, or out of a snapshot. What needs no change keeps its identity.
 * Nothing runs and nothing is sent because of it; an answer that was under way when it was stored is in doubt.
 */
export function loadMessage(state: ChatState, message: UIMessage, settle = settleLoaded): void {
  const cell = addMessage(state, message)
  let changed = false
  const interrupted: CallCell[] = []
  for (const part of message.parts) {
    if (part.type !== 'tool-call') addDone(state, cell, part)
    else {
      const settled = settle(part)
      const call = loadCall(state, cell, settled)
      changed ||= settled !== part
      if (settled !== part && part.state === 'executing') interrupted.push(call)
    }
  }
  // A client tool that was at work: the server has to hear that it may have run, so that nobody runs it again.
  for (const call of interrupted) {
    if (call.error) answerHere(state, call, `${call.id}-interrupted`, { error: call.error })
  }
  if (changed) return
  setPublished(cell, message)
}

export function loadCall(state: ChatState, owner: MessageCell, part: ToolCallPart): CallCell {
  const {
    id,
    name,
    input,
    state: reached,
    approval,
    output,
    error,
    providerExecuted = false,
    metadata,
  } = part
  const call = addCall(state, owner, {
    id,
    name,
    arguments: part.arguments,
    input,
    state: reached,
    approval,
    output,
    error,
    providerExecuted,
    metadata: metadata && { ...metadata },
    part: protectedCall(part),
  })
  const { approved, delivery } = approval ?? {}
  const unsettled = delivery === 'waiting' || delivery === 'unknown'
  if (unsettled && (approved === undefined || !isTerminal(reached))) state.unsent.add(call)
  return call
}

/** What cannot be true any more once a conversation was stored and loaded again. */
export function settleLoaded(part: ToolCallPart): ToolCallPart {
  if (part.state === 'awaiting-input' || part.state === 'input-streaming') {
    return { ...part, state: 'cancelled', error: incomplete }
  }
  if (part.state === 'executing') {
    const error = { message: 'It was interrupted and may or may not have run.', code: 'interrupted' }
    return { ...part, state: 'error', error }
  }
  if (part.state === 'approval-responded' && part.approval?.delivery === 'sent') {
    return { ...part, approval: { ...part.approval, delivery: 'unknown' } }
  }
  return part
}
