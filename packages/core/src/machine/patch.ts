import type { JsonPatch } from '../protocol/events.js'
import type { Outcome } from './effects.js'
import { COPIES_PER_DELTA } from './patch-memory.js'
import type { ChatState } from './state.js'

/** Sets a document as a delta changes it: whole, or not at all. */
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
    set(state.applyPatch(document, delta, state.memory))
    return undefined
  } catch {
    return 'patch-failed'
  }
}
