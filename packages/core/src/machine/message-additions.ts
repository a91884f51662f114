import type { EventOf } from '../protocol/events.js'
import { asString, isRecord, omitUndefined } from '../value.js'
import { addFixed, dropDrafts } from './drafts.js'
import type { Outcome } from './effects.js'
import { describe, meant, messageFor } from './message-events.js'
import type { ChatState } from './state.js'

/**
 * `CUSTOM source`: a source that a message refers to; `CUSTOM message-metadata`; `CUSTOM messages-dropped`: the server takes back a message of
 * the reply that it sends, and all after it, with their calls and requests. A value of another shape (`undefined`) belongs to the
 * application.
 */
export function changeMessage(state: ChatState, event: EventOf<'CUSTOM'>): Outcome {
  const {
    messageId,
    id,
    url,
    title,
    metadata: given,
  }: Record<string, unknown> = isRecord(event.value) ? event.value : {}
  const metadata = isRecord(given) ? given : undefined
  const isSource = event.name === 'source'
  const isDrop = event.name === 'messages-dropped'
  if (typeof messageId !== 'string' || !(isDrop || (isSource ? typeof id === 'string' : metadata)))
    return undefined
  const known = meant(state, messageId)
  if (known?.role === 'user') return 'illegal-step'
  if (isDrop) {
    if (known?.turn === state.turn) dropDrafts(state, state.order.splice(known.position))
    return []
  }
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
