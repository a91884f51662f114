import type { MessagePart, ReasoningPart, TextPart } from '../messages.js'
import { markStale, touchMessage } from './changes.js'
import type { FixedDraft, MessageDraft, PartDraft, ReasoningDraft, TextDraft } from './data.js'
import type { ChatState } from './state.js'

export function addText(state: ChatState, owner: MessageDraft, text: string, part?: TextPart): TextDraft {
  return addPart(state, { kind: 'text', owner, index: 0, stale: false, text, part })
}

export function addFixed(state: ChatState, owner: MessageDraft, part: MessagePart): FixedDraft {
  const draft = addPart(state, { kind: 'fixed', owner, index: 0, stale: false, part })
  if (part.type === 'tool-result' && !state.results.has(part.id)) state.results.set(part.id, draft)
  return draft
}

/** Adds a part that is finished, as it is. */
export function addDone(state: ChatState, owner: MessageDraft, part: MessagePart): void {
  if (part.type === 'text') addText(state, owner, part.text, part)
  else if (part.type === 'reasoning') addReasoning(state, owner, part, part)
  else {
    // A result is that of the latest call with its id.
    const call = part.type === 'tool-result' ? state.calls.get(part.toolCallId) : undefined
    if (call?.owner === owner) call.answered = true
    addFixed(state, owner, part)
  }
}

export function addReasoning(
  state: ChatState,
  owner: MessageDraft,
  { id, text, encryptedValue, metadata }: Omit<ReasoningPart, 'type'>,
  part?: ReasoningPart,
): void {
  const draft: ReasoningDraft = {
    kind: 'reasoning',
    owner,
    index: 0,
    stale: false,
    id,
    text,
    encryptedValue,
    metadata: metadata && { ...metadata },
    part,
  }
  state.reasoning.set(id, addPart(state, draft))
}

/** Puts a part at the end of its message. */
export function addPart<Draft extends PartDraft>(state: ChatState, draft: Draft): Draft {
  const { owner } = draft
  if (draft.kind !== 'text') owner.text = undefined
  draft.index = owner.parts.length
  owner.parts.push(draft)
  markStale(draft)
  touchMessage(state, owner)
  return draft
}
