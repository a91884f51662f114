import { createJsonReader } from '../json/partial.js'
import { getCountersignMetadata, isRecord, parseJson, setCountersignMetadata } from '../value.js'
import { touch } from './changes.js'
import type { MessageDraft, StructuredText } from './data.js'
import { meant, messageSteps } from './message-events.js'
import { growingValue } from './read.js'
import type { MoreSteps } from './state.js'

/** Steps for texts that are the JSON of a structured reply: `metadata.countersign.output` of their start says so. */
export const structuredSteps = {
  TEXT_MESSAGE_START(state, event) {
    const outcome = messageSteps.TEXT_MESSAGE_START(state, event)
    const draft = meant(state, event.messageId)
    if (draft?.streaming) draft.structured = structuredText(draft, event.metadata)
    return outcome
  },
  TEXT_MESSAGE_END(state, event) {
    const outcome = messageSteps.TEXT_MESSAGE_END(state, event)
    const draft = meant(state, event.messageId)
    if (outcome !== undefined || !draft?.structured) return outcome
    const final = finalOutput(textOf(draft), event.metadata)
    const last = draft.parts.findLast((part) => part.kind === 'text')
    draft.structured = final && {
      feed() {},
      publish: (part) => ({ type: 'text', text: part.text, ...(part === last && final) }),
    }
    for (const part of draft.parts) if (part.kind === 'text') touch(state, part)
    if (final) return undefined
    const { output: _, ...own } = getCountersignMetadata(draft.metadata)
    draft.metadata = setCountersignMetadata(draft.metadata, own)
    return undefined
  },
} satisfies MoreSteps

function textOf({ parts }: MessageDraft): string {
  return parts.map((part) => (part.kind === 'text' ? part.text : '')).join('')
}

/** Reads the text of a message from here on, and what it has already, if the metadata says that it is structured. */
function structuredText(draft: MessageDraft, metadata: unknown): StructuredText | undefined {
  if (getCountersignMetadata(metadata).output === undefined) return undefined
  const reader = createJsonReader()
  let length = 0
  const feed = (delta: string) => {
    reader.feed(delta)
    length += delta.length
  }
  feed(textOf(draft))
  return {
    feed,
    // A text that is not JSON is only a text.
    publish({ text }) {
      const output = reader.status === 'invalid' ? undefined : growingValue(reader, length)
      return output === undefined
        ? { type: 'text', text }
        : { type: 'text', text, output, outputState: 'partial' }
    },
  }
}

/**
 * The value of a whole text, if its metadata has the server's verdict: `output` is `true` if it is valid, and `{ value }` if validation has
 * changed it.
 */
export function finalOutput(
  text: string,
  metadata: unknown,
): { readonly output: unknown; readonly outputState: 'final' } | undefined {
  const { output: verdict } = getCountersignMetadata(metadata)
  const output = isRecord(verdict) ? verdict.value : verdict === true ? parseJson(text) : undefined
  return output === undefined ? undefined : { output, outputState: 'final' }
}
