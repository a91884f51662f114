import type { EventOf } from '../protocol/events.js'
import { asString, isRecord, omitUndefined } from '../value.js'
import { markUnnotified, orderChanged } from './changes.js'
import { addFixed, dropPart } from './drafts.js'
import type { Outcome } from './effects.js'
import { describe, meant, messageFor } from './message-events.js'
import type { ChatState } from './state.js'

/**
 * `CUSTOM source`: a source that a message refers to; `CUSTOM message-metadata`. A value of another shape (`undefined`) belongs to the
 * application.
 */
export function addToMessage(state: ChatState, event: EventOf<'CUSTOM'>): Outcome {
  const {
    messageId,
    id,
    url,
    title,
    metadata: given,
  }: Record<string, unknown> = isRecord(event.value) ? event.value : {}
  const metadata = isRecord(given) ? given : undefined
  const isSource = event.name === 'source'
  if (typeof messageId !== 'string' || !(isSource ? typeof id === 'string' : metadata)) return undefined
  if (meant(state, messageId)?.role === 'user') return 'illegal-step'
  const owner = messageFor(state, messageId, event)
  if (!isSource || typeof id !== 'string') {
    describe(state, owner, omitUndefined({ metadata }))
    return []
  }
  const more = { url: asString(url), title: asString(title), metadata }
  owner.sources ??= new Set(owner.parts.flatMap(({ part }) => (part?.type === 'source' ? [part.id] : [])))
  if (!owner.sources.has(id)) addFixed(state, owner, omitUndefined({ type: 'source' as const, id, ...more }))
  owner.sources.add(id)
  return []
}

/**
 * `CUSTOM messages-dropped`: the server takes back the last messages of the reply that it sends, with their calls and requests. A value of
 * another shape belongs to the application.
 */
export function dropMessages(state: ChatState, { value }: EventOf<'CUSTOM'>): Outcome {
  const ids = isRecord(value) ? value.messageIds : undefined
  if (!Array.isArray(ids)) return undefined
  const { order, messages } = state
  const dropped = new Set(ids.map((id) => meant(state, String(id))))
  // From the end: what comes before costs nothing.
  for (let last = order.at(-1); last?.role === 'assistant' && dropped.has(last); last = order.at(-1)) {
    order.pop()
    messages.delete(last.id)
    markUnnotified(state, last)
    for (const part of last.parts) dropPart(state, part)
    orderChanged(state)
  }
  return []
}
