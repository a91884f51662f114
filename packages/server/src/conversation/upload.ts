import { getCountersignMetadata, type Message, setCountersignMetadata } from '@countersign/core'
import { readCalls } from '../history/history.js'

/**
 * A page's copy of a conversation, as far as it may be stored: messages of the user, texts of the assistant, and calls that have a result.
 * Without tokens, approvals and decisions, and without calls that are open, so nothing of it can be answered or run.
 */
export function uploadedHistory(given: readonly Message[]): Message[] {
  const results = new Map(
    readCalls(given).flatMap(({ call, result }) => (result === undefined ? [] : [[call, result] as const])),
  )
  const kept = new Set<Message>(results.values())
  const ids = new Set<string>()
  return given.flatMap((message): Message[] => {
    if (ids.has(message.id)) return []
    ids.add(message.id)
    if (message.role === 'user') return [plain(message)]
    if (message.role === 'tool') return kept.has(message) ? [plain(message)] : []
    if (message.role !== 'assistant') return []
    const { toolCalls = [], ...rest } = plain(message)
    const calls = toolCalls.filter((call) => results.has(call)).map(plain)
    if (calls.length > 0) return [{ ...rest, toolCalls: calls }]
    return rest.content ? [rest] : []
  })
}

/** Without our own data, which only the server may write. */
function plain<T extends { readonly metadata?: Readonly<Record<string, unknown>> | undefined }>(item: T): T {
  if (Object.keys(getCountersignMetadata(item.metadata)).length === 0) return item
  const { metadata, ...rest } = item
  const left = setCountersignMetadata(metadata, {})
  return { ...rest, ...(left && { metadata: left }) } as T
}
