import type { Message } from '@countersign/core'
import { fromJson, type LangGraphCall } from './wire.js'

/** What the page already shows of a conversation, by id. */
export interface Shown {
  /** The texts of the assistant's messages. */
  readonly texts: ReadonlyMap<string, string>
  /** The calls of each message that have no result yet. */
  readonly open: ReadonlyMap<string, readonly string[]>
  /** By {@link callKey}. */
  readonly calls: ReadonlySet<string>
  /** Which message made the last call with an id. */
  readonly makers: ReadonlyMap<string, string>
  /** Calls with a result, by {@link callKey}. */
  readonly answered: ReadonlySet<string>
  /** The calls of the assistant's last message. */
  readonly lastCalls: readonly LangGraphCall[]
}

export function shownIn(messages: readonly Message[]): Shown {
  const answered = new Set<string>()
  const texts = new Map<string, string>()
  const calls = new Set<string>()
  const makers = new Map<string, string>()
  for (const message of messages) {
    if (message.role === 'tool') answered.add(callKey(makers.get(message.toolCallId), message.toolCallId))
    if (message.role !== 'assistant') continue
    for (const { id } of message.toolCalls ?? []) {
      makers.set(id, message.id)
      calls.add(callKey(message.id, id))
    }
    texts.set(message.id, typeof message.content === 'string' ? message.content : '')
  }
  const open = messages.flatMap((message): [string, string[]][] => {
    if (message.role !== 'assistant') return []
    const made = (message.toolCalls ?? []).map(({ id }) => id)
    return [[message.id, made.filter((id) => !answered.has(callKey(message.id, id)))]]
  })
  return { texts, open: new Map(open), calls, makers, answered, lastCalls: lastCallsOf(messages) }
}

/** Distinguishes calls with one id by the message that made them. */
export function callKey(messageId: string | undefined, toolCallId: string): string {
  return JSON.stringify([messageId, toolCallId])
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
