import type { ApplyPatch } from '@countersign/core'
import fastJsonPatch from 'fast-json-patch'

/**
 * RFC 6902 for AG-UI state and activity deltas. The document is not changed; a patch that does not apply as a whole throws and changes
 * nothing.
 *
 * @example new ChatClient({ connection, statePatch })
 */
export const statePatch: ApplyPatch = (document, patch) =>
  fastJsonPatch.applyPatch(document, fastJsonPatch.deepClone(patch), true, false, true).newDocument
