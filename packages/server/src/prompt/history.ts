import type { AssistantPart, PromptMessage, ToolMessagePart } from './parts.js'
import type { ResponsePart, StreamPart } from './stream.js'

/** Combines the parts of a stream to whole parts: pieces of text are joined, the end of the run is omitted. */
export function toResponseParts(parts: Iterable<StreamPart>): ResponsePart[] {
  const whole: ResponsePart[] = []
  let writing: string | undefined
  for (const part of parts) {
    if (part.type === 'finish') continue
    const last = whole.at(-1)
    const now = pieceOf(part)
    if ('delta' in part) {
      if (writing === now && (last?.type === 'text' || last?.type === 'reasoning'))
        whole[whole.length - 1] = { ...last, text: last.text + part.delta }
      else if (part.type === 'text-delta') whole.push({ type: 'text', text: part.delta })
      else whole.push({ type: 'reasoning', id: part.id, text: part.delta })
    } else whole.push(part)
    writing = now
  }
  return whole
}

function pieceOf(part: StreamPart): string | undefined {
  if (part.type === 'text-delta') return `text ${part.messageId}`
  return part.type === 'reasoning-delta' ? `reasoning ${part.id}` : undefined
}

/**
 * Converts a run's response to history: calls and requests in an assistant message, results in the tool message after it, in order.
 * Preliminary results are omitted. `newId` generates the ids of assistant messages.
 */
export function fromResponseParts(parts: Iterable<ResponsePart>, newId: () => string): PromptMessage[] {
  const messages: PromptMessage[] = []
  let content: AssistantPart[] = []
  let results: ToolMessagePart[] = []
  const close = () => {
    if (content.length > 0) messages.push({ id: newId(), role: 'assistant', content })
    if (results.length > 0) messages.push({ role: 'tool', content: results })
    content = []
    results = []
  }
  for (const part of parts) {
    if (part.type === 'tool-result') {
      if (!part.preliminary) results.push(part)
      continue
    }
    if (results.length > 0) close()
    content.push(part)
  }
  close()
  return messages
}
