import type { JsonPatch } from '../protocol/events.js'
import { omitUndefined, reportRejection } from '../value.js'
import { touch } from './changes.js'
import type { MessageDraft } from './data.js'
import { addFixed, isActivity } from './drafts.js'
import type { Outcome } from './effects.js'
import { readActivity } from './fold.js'
import { describe, newMessage } from './message-events.js'
import { withMember } from './owned.js'
import { COPIES_PER_DELTA } from './patch-memory.js'
import type { ChatState, StepTable } from './state.js'
import { subagentMetadata } from './subagents.js'

/** Steps for activities: structured content defined by the application. */
export const activitySteps = {
  ACTIVITY_SNAPSHOT(state, event) {
    const { messageId: id, activityType, replace } = event
    const { data, metadata } = readActivity(event)
    const said = omitUndefined({ metadata })
    const known = state.messages.get(id)
    if (known && !isActivity(known)) return 'illegal-step'
    if (known && replace === false) {
      describe(state, known, said)
      return undefined
    }
    const draft = known ?? newMessage(state, id, 'assistant', event)
    setActivity(state, draft, activityType, data)
    // AG-UI: an activity belongs to the subagent that replaced it last.
    const { subagent } = subagentMetadata(state, event) ?? {}
    draft.metadata = withMember(state, draft.metadata, 'subagent', subagent)
    describe(state, draft, said)
    return undefined
  },
  ACTIVITY_DELTA(state, event) {
    const { messageId, activityType, patch } = event
    const draft = state.messages.get(messageId)
    const part = draft?.parts[0]
    if (!draft || part?.kind !== 'fixed' || part.part.type !== 'data') return 'unknown-id'
    return patched(state, part.part.data, patch, (data) => {
      setActivity(state, draft, activityType, data)
      describe(state, draft, event)
    })
  },
} satisfies Partial<StepTable>

function setActivity(state: ChatState, draft: MessageDraft, name: string, data: unknown): undefined {
  const part = { type: 'data', name, data } as const
  const [first] = draft.parts
  if (first?.kind === 'fixed') {
    first.part = part
    touch(state, first)
  } else addFixed(state, draft, part)
}

/** Applies a delta to a document, completely or not at all. */
export function patched(
  state: ChatState,
  document: unknown,
  delta: JsonPatch,
  set: (document: unknown) => void,
): Outcome {
  if (!state.applyPatch) return 'patch-failed'
  try {
    state.memory.copies += COPIES_PER_DELTA
    state.memory.isUsed = true
    const next = state.applyPatch(document, delta, state.memory)
    if (reportRejection(next, () => {})) return 'patch-failed'
    set(next)
    return undefined
  } catch {
    return 'patch-failed'
  }
}
