import type { MessagePart, ReasoningPart, TextPart, UIMessage } from '../messages.js'
import { dropCall, dropFrom } from './calls.js'
import { addPart, markUnnotified, orderChanged, touchMessage } from './changes.js'
import type { End, FixedDraft, MessageDraft, PartDraft, ReasoningDraft, TextDraft } from './data.js'
import { setPublished } from './read.js'
import type { ChatState } from './state.js'

/** Appends a message. The caller has made sure that the id is new. */
export function addMessage(
  state: ChatState,
  { id, role, metadata, createdAt }: Pick<UIMessage, 'id' | 'role' | 'metadata' | 'createdAt'>,
): MessageDraft {
  if (role === 'user') state.turn++
  const draft: MessageDraft = {
    id,
    role,
    turn: state.turn,
    parts: [],
    metadata: metadata && { ...metadata },
    createdAt,
    position: state.order.length,
    text: undefined,
    structured: undefined,
    sources: undefined,
    provisional: false,
    streaming: false,
    published: undefined,
    shown: undefined,
    stale: [],
    dirty: false,
    unnotified: false,
    unpublished: false,
  }
  state.order.push(draft)
  state.messages.set(id, draft)
  // Earlier messages keep their position and their published form.
  state.published.ids = undefined
  touchMessage(state, draft)
  return draft
}

/** Gives a message that held only reasoning the id of the assistant message it belongs to. */
export function renameMessage(state: ChatState, draft: MessageDraft, id: string): void {
  state.messages.delete(draft.id)
  state.changed.push({ id: draft.id, unnotified: true })
  draft.id = id
  draft.provisional = false
  state.messages.set(id, draft)
  orderChanged(state)
  touchMessage(state, draft)
}

/** Removes every message that `keep` rejects, with its calls, approvals and everything unsent. */
export function retainMessages(state: ChatState, keep: (draft: MessageDraft) => boolean): void {
  const gone: MessageDraft[] = []
  const kept = state.order.filter((draft) => keep(draft) || !gone.push(draft))
  if (gone.length === 0) return
  dropDrafts(state, gone)
  setOrder(state, kept)
}

/** Removes what is known of these messages, but for their place in the order. */
export function dropDrafts(state: ChatState, drafts: readonly MessageDraft[]): void {
  for (const draft of drafts) {
    state.messages.delete(draft.id)
    markUnnotified(state, draft)
    for (const part of draft.parts) dropPart(state, part)
  }
  orderChanged(state)
}

function setOrder(state: ChatState, order: MessageDraft[]): void {
  let turn = 0
  order.forEach((draft, position) => {
    if (draft.role === 'user') turn++
    draft.position = position
    draft.turn = turn
  })
  state.order = order
  state.turn = turn
  // Numbered ids may be free again.
  state.repeats.clear()
}

/** The current end of the conversation. A text that is still streaming is not counted. */
export function endOf({ order }: ChatState): End {
  const last = order.at(-1)
  const open = last?.streaming ? last.text : undefined
  return [order.length, open?.index ?? last?.parts.length ?? 0]
}

/**
 * Removes unfinished output since then, back to the last call or result and the data right after it: the run failed, and the one that
 * repeats it streams it again. Calls stay, because they may have run.
 */
export function dropUnfinished(state: ChatState, [count, from]: End): void {
  const dropped = new Set<MessageDraft>()
  for (let at = state.order.length - 1; at >= Math.max(count - 1, 0); at--) {
    const draft = state.order[at]
    if (draft?.role !== 'assistant') break
    const lasting = draft.parts.findLastIndex(isLasting) + 1
    const kept = Math.max(at < count ? from : 0, lasting)
    if (kept === 0 && at >= count) {
      dropped.add(draft)
      continue
    }
    // The data that its tools have written.
    for (const next of state.order.slice(at + 1)) {
      if (lasting < kept || !isActivity(next)) break
      dropped.delete(next)
    }
    if (kept === draft.parts.length) break
    for (const part of draft.parts.slice(kept)) dropPart(state, part)
    keepParts(state, draft, draft.parts.slice(0, kept))
    Object.assign(draft, { text: undefined, streaming: false })
    break
  }
  retainMessages(state, (draft) => !dropped.has(draft))
}

function isLasting(part: PartDraft): boolean {
  if (part.kind === 'call') return !part.reader && part.error?.code !== 'incomplete-arguments'
  return part.kind === 'fixed' && part.part.type === 'tool-result'
}

/** Activities have a separate id namespace in AG-UI. One with the id of a message must not overwrite that message. */
export function isActivity({ role, parts }: MessageDraft): boolean {
  const [first] = parts
  return role === 'assistant' && parts.length === 1 && first?.kind === 'fixed' && first.part.type === 'data'
}

export function keepParts(state: ChatState, draft: MessageDraft, parts: PartDraft[]): void {
  setPublished(draft, undefined)
  draft.parts = parts
  draft.sources = undefined
  parts.forEach((part, index) => {
    part.index = index
  })
  touchMessage(state, draft)
}

export function addText(state: ChatState, owner: MessageDraft, text: string, part?: TextPart): TextDraft {
  return addPart(state, { kind: 'text', owner, index: 0, stale: false, text, part })
}

export function addFixed(state: ChatState, owner: MessageDraft, part: MessagePart): FixedDraft {
  const draft = addPart(state, { kind: 'fixed', owner, index: 0, stale: false, part })
  if (part.type === 'tool-result' && !state.results.has(part.id)) state.results.set(part.id, draft)
  return draft
}

/** Adds a finished part unchanged. */
export function addDone(state: ChatState, owner: MessageDraft, part: MessagePart): void {
  if (part.type === 'text') addText(state, owner, part.text, part)
  else if (part.type === 'reasoning') addReasoning(state, owner, part, part)
  else {
    // A result belongs to the latest call with its id.
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

export function dropPart(state: ChatState, part: PartDraft): void {
  if (part.kind === 'call') dropCall(state, part)
  if (part.kind === 'reasoning') dropFrom(state.reasoning, part.id, part)
  if (part.kind === 'fixed' && part.part.type === 'tool-result') dropFrom(state.results, part.part.id, part)
}
