import type { EventOf } from '../protocol/events.js'
import { filled, getCountersignMetadata, omitUndefined } from '../value.js'
import { touch, touchMessage } from './changes.js'
import { isActivity, meant } from './message-events.js'
import { merge, withMember } from './owned.js'
import { type PreservedFields, preservedOf } from './preserved.js'
import type { ChatState, StepTable } from './state.js'

/** The step of opaque content of the model's provider. */
export const encryptedSteps = {
  /** Opaque content of the model's provider, to be sent back as it came with the reasoning or call it belongs to. */
  REASONING_ENCRYPTED_VALUE(state, event) {
    const { subtype, entityId } = event
    const isMessage = subtype === 'message'
    const part = isMessage ? state.reasoning.get(entityId) : state.calls.get(entityId)
    const draft = part ?? (isMessage && meant(state, entityId))
    if (!draft) return isMessage && preserveForResult(state, event) ? undefined : 'unknown-id'
    // AG-UI: an activity holds none.
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

/** Keeps what is to go back with a result, which is a message of its own in AG-UI. Says whether there is one of that id. */
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

/** Metadata that keeps what a provider wants back (`withPreserved`, for what grows piece by piece). */
function mergePreserved(
  state: ChatState,
  metadata: Readonly<Record<string, unknown>> | undefined,
  fields: PreservedFields,
): Record<string, unknown> | undefined {
  // a kind without its value, or of the value before, says nothing and goes
  const own =
    withMember(state, getCountersignMetadata(metadata), 'encryptedValueType', fields.encryptedValueType) ?? {}
  return withMember(state, metadata, 'countersign', filled(merge(state, own, { ...fields })))
}
