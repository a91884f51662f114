import type { UIMessage } from '../messages.js'
import { asString, getCountersignMetadata, omitUndefined } from '../value.js'
import { grow, touch, touchMessage } from './changes.js'
import { checkMessages } from './check-messages.js'
import type { MessageDraft, ReasoningDraft } from './data.js'
import {
  addDone,
  addMessage,
  addReasoning,
  addText,
  isActivity,
  renameMessage,
  retainMessages,
} from './drafts.js'
import { merge, mergeMetadata } from './owned.js'
import { readMessages } from './read.js'
import { isRefusedWhole } from './runs.js'
import type { ChatState, StepTable } from './state.js'
import { subagentIdOf, subagentMetadata } from './subagents.js'

/** Identifies the subagent, if it is not the agent itself. */
export interface Attributed {
  readonly subagentRunId?: string
}

/** With the message that was refused, the next one would be refused as well. Of several that were sent together, it was hardly a small one. */
function dropRefused(state: ChatState): void {
  const lastReply = state.order.findLastIndex(({ role }) => role !== 'user')
  const sent = readMessages(state).slice(lastReply + 1)
  const sizes = sent.map((message) => JSON.stringify(message).length)
  const refused = sent[sizes.indexOf(Math.max(...sizes))]
  retainMessages(state, ({ id }) => id !== refused?.id)
}

export const messageSteps = {
  'user-message'(state, { message }) {
    checkMessages([message])
    if (state.messages.has(message.id)) return 'illegal-step'
    if (isRefusedWhole(state.error)) dropRefused(state)
    const draft = addMessage(state, message)
    for (const part of message.parts) addDone(state, draft, { ...part })
    return undefined
  },
  TEXT_MESSAGE_START(state, event) {
    const { messageId: id, role = 'assistant', name } = event
    const present = meant(state, id)
    // AG-UI: an activity cannot become a text. One of an earlier turn may reuse the id.
    if (present?.turn === state.turn && isActivity(present)) return 'illegal-step'
    const draft = messageFor(state, id, event, role === 'developer' ? 'system' : role)
    draft.streaming = true
    if (name !== undefined || role === 'developer') {
      const speaker = omitUndefined({ name, role: role === 'developer' ? role : undefined })
      draft.metadata = mergeMetadata(state, draft.metadata, { countersign: speaker })
    }
    describe(state, draft, event)
    return undefined
  },
  TEXT_MESSAGE_CONTENT(state, event) {
    const { messageId, delta } = event
    const draft = meant(state, messageId)
    if (!draft?.streaming) return draft ? 'illegal-step' : 'unknown-id'
    describe(state, draft, event)
    if (delta === '') return undefined
    draft.text ??= addText(state, draft, '')
    draft.text.text += delta
    draft.structured?.feed(delta, draft.text)
    grow(state, draft.text)
    return undefined
  },
  TEXT_MESSAGE_END(state, event) {
    const draft = meant(state, event.messageId)
    if (!draft?.streaming) return draft ? 'illegal-step' : 'unknown-id'
    draft.streaming = false
    describe(state, draft, event)
    return undefined
  },
  /** Reasoning belongs to the message it names, else to the assistant message that follows. */
  REASONING_MESSAGE_START(state, event) {
    const { messageId: id, metadata } = event
    if (state.reasoning.get(id)?.owner.turn === state.turn) return undefined
    const hint = asString(getCountersignMetadata(metadata).messageId)
    const owner = hint === undefined ? provisionalMessage(state, id, event) : messageFor(state, hint, event)
    addReasoning(state, owner, omitUndefined({ id, text: '', metadata }))
    return undefined
  },
  REASONING_MESSAGE_CONTENT(state, { messageId, delta, metadata }) {
    const draft = state.reasoning.get(messageId)
    if (!draft) return 'unknown-id'
    if (metadata) describeReasoning(state, draft, metadata)
    if (delta === '') return undefined
    draft.text += delta
    grow(state, draft)
    return undefined
  },
  REASONING_MESSAGE_END(state, { messageId, metadata }) {
    const draft = state.reasoning.get(messageId)
    if (!draft) return 'unknown-id'
    if (metadata) describeReasoning(state, draft, metadata)
    return undefined
  },
} satisfies Partial<StepTable>

/** Adds a message with a new id, marked with its subagent. */
export function newMessage(
  state: ChatState,
  id: string,
  role: UIMessage['role'],
  event: Attributed,
): MessageDraft {
  const metadata = subagentMetadata(state, event)
  return addMessage(state, { id, role, ...(metadata && { metadata }) })
}

/**
 * The message with that id in the current turn; created if there is none. Some servers reuse ids in every run. A user message closes the
 * messages before it, so the same id in a later turn is another message, under the next free numbered id (`m1-2`); so is an id that
 * something else uses. An assistant message takes over reasoning by the same agent right before it. `atEnd`: it must be the last message.
 */
export function messageFor(
  state: ChatState,
  id: string,
  event: Attributed,
  role: UIMessage['role'] = 'assistant',
  atEnd = false,
): MessageDraft {
  const last = state.order.at(-1)
  for (let n = (!atEnd && state.repeats.get(id)) || 1; ; n++) {
    const name = nameOf(id, n)
    const found = state.messages.get(name)
    if (found && (found.role !== role || found.turn !== state.turn || isActivity(found))) continue
    if (found && atEnd && found !== last) continue
    // Remembered, because searching the numbered ids on every delta would take quadratic time.
    if (n > 1 && !atEnd) state.repeats.set(id, n)
    if (found) return found
    if (role !== 'assistant' || !isOpenTo(last, event)) return newMessage(state, name, role, event)
    renameMessage(state, last, name)
    return last
  }
}

/** The message that a stream refers to by an id. */
export function meant({ messages, repeats }: ChatState, id: string): MessageDraft | undefined {
  return messages.get(nameOf(id, repeats.get(id) ?? 1))
}

export function nameOf(id: string, n: number): string {
  return n === 1 ? id : `${id}-${n}`
}

/** Whether a message holds only reasoning so far, by the same agent. */
function isOpenTo(draft: MessageDraft | undefined, { subagentRunId }: Attributed): draft is MessageDraft {
  return draft?.provisional === true && subagentIdOf(draft.metadata) === subagentRunId
}

/** The message that holds reasoning until its assistant message begins. */
function provisionalMessage(state: ChatState, id: string, event: Attributed): MessageDraft {
  const last = state.order.at(-1)
  if (isOpenTo(last, event)) return last
  const count = state.order.length
  const draft = messageFor(state, id, event)
  if (state.order.length > count) draft.provisional = true
  return draft
}

/** Merges metadata key by key; the last write wins (AG-UI 1.0, metadata). */
export function describe(
  state: ChatState,
  draft: MessageDraft,
  { metadata }: { readonly metadata?: Record<string, unknown> },
): void {
  if (!metadata) return
  draft.metadata = merge(state, draft.metadata, metadata)
  touchMessage(state, draft)
}

function describeReasoning(state: ChatState, draft: ReasoningDraft, metadata: Record<string, unknown>): void {
  draft.metadata = merge(state, draft.metadata, metadata)
  touch(state, draft)
}
