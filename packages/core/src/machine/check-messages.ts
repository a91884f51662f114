import { CountersignError } from '../errors.js'
import type { UIMessage } from '../messages.js'
import { isRecord } from '../value.js'
import { isToolCallState } from './transitions.js'

/**
 * Validates messages that the application passes in, before anything changes, and returns them.
 *
 * @throws CountersignError `invalid-argument` unless it is a list of UI messages, each with `id`, `role` and
 * `parts`, and all ids are different.
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

/** The first message whose id an earlier message has. */
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

/** Whether a value has the shape of a message. */
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
  const isAnswer = approved === undefined || typeof approved === 'boolean'
  return typeof id === 'string' && Array.isArray(options) && isAnswer
}
