import type { EventOf } from '../protocol/events.js'
import { asString, isRecord, omitUndefined } from '../value.js'
import { addFixed, retainMessages } from './drafts.js'
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

/** `CUSTOM messages-dropped`: the server takes back messages of the reply. A value of another shape belongs to the application. */
export function dropMessages(state: ChatState, { value }: EventOf<'CUSTOM'>): Outcome {
  const ids = isRecord(value) ? value.messageIds : undefined
  if (!Array.isArray(ids)) return undefined
  const dropped = new Set(ids.map((id) => meant(state, String(id))))
  retainMessages(state, (draft) => draft.role !== 'assistant' || !dropped.has(draft))
  return []
}
