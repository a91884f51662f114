import type { Message } from '@countersign/core'
import { fromJson, type LangGraphCall } from './wire.js'

/** What of a conversation is on the screen already, by id. */
export interface Shown {
  /** The texts of the assistant's messages. */
  readonly texts: ReadonlyMap<string, string>
  /** The calls that a message made and that have no result yet. */
  readonly open: ReadonlyMap<string, readonly string[]>
  readonly calls: ReadonlySet<string>
  /** Calls with a result. */
  readonly answered: ReadonlySet<string>
  /** The calls of the assistant's last message. */
  readonly lastCalls: readonly LangGraphCall[]
}

export function shownIn(messages: readonly Message[]): Shown {
  const answered = new Set(messages.flatMap((one) => (one.role === 'tool' ? [one.toolCallId] : [])))
  const texts = new Map<string, string>()
  const open = new Map<string, readonly string[]>()
  const calls = new Set<string>()
  for (const message of messages) {
    if (message.role !== 'assistant') continue
    const made = (message.toolCalls ?? []).map(({ id }) => id)
    for (const id of made) calls.add(id)
    texts.set(message.id, typeof message.content === 'string' ? message.content : '')
    open.set(
      message.id,
      made.filter((id) => !answered.has(id)),
    )
  }
  return { texts, open, calls, answered, lastCalls: lastCallsOf(messages) }
}

function lastCallsOf(messages: readonly Message[]): readonly LangGraphCall[] {
  const last = messages.findLast(({ role }) => role === 'assistant')
  if (last?.role !== 'assistant') return []
  return (last.toolCalls ?? []).map((call) => ({
    id: call.id,
    name: call.function.name,
    args: fromJson(call.function.arguments),
  }))
}
