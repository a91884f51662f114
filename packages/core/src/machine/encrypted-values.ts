import type { EventOf } from '../protocol/events.js'
import { filled, getCountersignMetadata, omitUndefined } from '../value.js'
import { touch, touchMessage } from './changes.js'
import { isActivity } from './drafts.js'
import { meant } from './message-events.js'
import { merge, withMember } from './owned.js'
import { type PreservedFields, preservedOf } from './preserved.js'
import type { ChatState, StepTable } from './state.js'

export const encryptedSteps = {
  /** Opaque content of the model's provider, sent back unchanged with the reasoning or call it belongs to. */
  REASONING_ENCRYPTED_VALUE(state, event) {
    const { subtype, entityId } = event
    const isMessage = subtype === 'message'
    const part = isMessage ? state.reasoning.get(entityId) : state.calls.get(entityId)
    const draft = part ?? (isMessage && meant(state, entityId))
    if (!draft) return isMessage && preserveForResult(state, event) ? undefined : 'unknown-id'
    // AG-UI: an activity has none.
    if ('parts' in draft && isActivity(draft)) return 'unknown-id'
    if (part?.kind === 'reasoning') {
      part.encryptedValue = event.encryptedValue
      const { encryptedValueType } = preservedOf(event)
      part.metadata = mergePreserved(state, part.metadata, omitUndefined({ encryptedValueType }))
    } else draft.metadata = mergePreserved(state, draft.metadata, preservedOf(event))
    if (part) touch(state, part)
    else if ('parts' in draft) touchMessage(state, draft)
    return undefined
  },
} satisfies Partial<StepTable>

/** Keeps opaque content with a result, which is a separate message in AG-UI. Returns whether there is a result with that id. */
function preserveForResult(state: ChatState, event: EventOf<'REASONING_ENCRYPTED_VALUE'>): boolean {
  const draft = state.results.get(event.entityId)
  if (draft?.part.type !== 'tool-result') return false
  draft.part = omitUndefined({
    ...draft.part,
    metadata: mergePreserved(state, draft.part.metadata, preservedOf(event)),
  })
  touch(state, draft)
  return true
}

/** Stores opaque content in metadata; like `withPreserved`, but for metadata that grows incrementally. */
function mergePreserved(
  state: ChatState,
  metadata: Readonly<Record<string, unknown>> | undefined,
  fields: PreservedFields,
): Record<string, unknown> | undefined {
  // A type without a value, or left over from an earlier value, is meaningless and is removed.
  const own =
    withMember(state, getCountersignMetadata(metadata), 'encryptedValueType', fields.encryptedValueType) ?? {}
  return withMember(state, metadata, 'countersign', filled(merge(state, own, { ...fields })))
}
