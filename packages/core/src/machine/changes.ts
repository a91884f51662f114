import { changeAsked, isAsked } from './asked.js'
import type { MessageDraft, PartDraft } from './data.js'
import type { ChatState } from './state.js'

/** Notes a change that listeners must be notified of at once. */
export function touch(state: ChatState, part: PartDraft): void {
  grow(state, part)
  state.pendingNotification = 'change'
}

/** Notes that a text, reasoning or arguments have grown. Listeners may be notified with the next frame. */
export function grow(state: ChatState, part: PartDraft): void {
  if (part.kind !== 'fixed') part.part = undefined
  if (part.kind === 'call' && isAsked(part)) changeAsked(state, part)
  markStale(part)
  markDirty(state, part.owner)
  if (state.pendingNotification === 'nothing') state.pendingNotification = 'growth'
}

export function touchMessage(state: ChatState, draft: MessageDraft): void {
  markDirty(state, draft)
  state.pendingNotification = 'change'
}

function markDirty(state: ChatState, draft: MessageDraft): void {
  draft.dirty = true
  markUnnotified(state, draft)
  if (draft.unpublished) return
  draft.unpublished = true
  state.dirty.push(draft)
}

export function markUnnotified(state: ChatState, draft: MessageDraft): void {
  if (draft.unnotified) return
  draft.unnotified = true
  state.changed.push(draft)
}

export function markStale(part: PartDraft): void {
  if (part.stale) return
  part.stale = true
  part.owner.stale.push(part)
}

export function orderChanged(state: ChatState): void {
  state.published.messages = undefined
  state.published.ids = undefined
  state.pendingNotification = 'change'
}

export function addPart<Draft extends PartDraft>(state: ChatState, draft: Draft): Draft {
  const { owner } = draft
  if (draft.kind !== 'text') owner.text = undefined
  draft.index = owner.parts.length
  owner.parts.push(draft)
  markStale(draft)
  touchMessage(state, owner)
  return draft
}
