import { createJsonReader } from '../json/partial.js'
import { filled, getCountersignMetadata, isRecord, parseJson } from '../value.js'
import { touch } from './changes.js'
import type { MessageDraft, StructuredText, TextDraft } from './data.js'
import { meant, messageSteps } from './message-events.js'
import { withMember } from './owned.js'
import { growingValue } from './read.js'
import type { ChatState, MoreSteps } from './state.js'

/** Steps for texts that are the JSON of a structured reply: `metadata.countersign.output` of their start says so. */
export const structuredSteps = {
  TEXT_MESSAGE_START(state, event) {
    const outcome = messageSteps.TEXT_MESSAGE_START(state, event)
    const draft = meant(state, event.messageId)
    if (!draft?.streaming || getCountersignMetadata(event.metadata).output === undefined) return outcome
    draft.structured ??= structuredText(draft)
    draft.structured.verdict = undefined
    return outcome
  },
  TEXT_MESSAGE_END(state, event) {
    const outcome = messageSteps.TEXT_MESSAGE_END(state, event)
    const draft = meant(state, event.messageId)
    if (outcome !== undefined || !draft?.structured) return outcome
    const { output } = getCountersignMetadata(event.metadata)
    draft.structured.verdict = output ?? false
    for (const part of draft.structured.takePieces()) touch(state, part)
    if (output === undefined) forgetMark(state, draft)
    return undefined
  },
} satisfies MoreSteps

/** The text turned out to be only a text. */
function forgetMark(state: ChatState, draft: MessageDraft): void {
  const { output: _, ...own } = getCountersignMetadata(draft.metadata)
  draft.metadata = withMember(state, draft.metadata, 'countersign', filled(own))
}

/** Reads the text of a message as it arrives. Each piece is read once, however often the message is started and ended. */
function structuredText({ parts }: MessageDraft): StructuredText {
  const reader = createJsonReader()
  let length = 0
  let last: TextDraft | undefined
  /** The last text part, and earlier ones that may still show the value. */
  let pieces: TextDraft[] = []
  const feed = (delta: string, part: TextDraft) => {
    if (part !== last) pieces.push(part)
    last = part
    reader.feed(delta)
    length += delta.length
  }
  for (const part of parts) if (part.kind === 'text') feed(part.text, part)
  return {
    verdict: undefined,
    feed,
    takePieces() {
      const taken = pieces
      pieces = last ? [last] : []
      return taken
    },
    publish(part) {
      const { text } = part
      if (part !== last) return { type: 'text', text }
      if (this.verdict === true) reader.end()
      const isUsable = this.verdict === true ? reader.status === 'complete' : reader.status !== 'invalid'
      const read = isUsable ? growingValue(reader, length) : undefined
      const output = isRecord(this.verdict) ? this.verdict.value : read
      if (output === undefined || this.verdict === false) return { type: 'text', text }
      return { type: 'text', text, output, outputState: this.verdict === undefined ? 'partial' : 'final' }
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
