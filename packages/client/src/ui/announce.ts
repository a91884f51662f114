import { displayText, type Interrupt, type ToolCallPart, type UIMessage } from '@countersign/core'
import type { ChatClient } from '../client.js'

/** The parts of a chat that an announcement depends on. */
interface Heard {
  isLoading: boolean
  pending: readonly ToolCallPart[]
  questions: readonly Interrupt[]
  messages: readonly UIMessage[]
}

/** What a screen reader should announce when `before` became `now`: new requests, expired ones and questions at once, a reply when it is complete. */
function announcement(before: Heard, now: Heard): string | undefined {
  const known = new Set(before.pending.map((part) => part.approval?.id))
  const fresh = now.pending.filter((part) => !known.has(part.approval?.id))
  if (fresh.length > 0) {
    const names = fresh.map((part) => displayText(part.name).text).join(', ')
    return `Your approval is needed: ${names}. ${now.pending.length} waiting.`
  }
  const expired = before.pending.flatMap(({ approval }) => expiredIn(now.messages, approval?.id))
  if (expired.length > 0) return `Expired without an answer: ${expired.join(', ')}.`
  const question = now.questions.find(({ id }) => !before.questions.some((other) => other.id === id))
  if (question) return `A question for you: ${displayText(question.message ?? '').text}`
  if (before.isLoading && !now.isLoading && now.pending.length === 0) return answerText(now.messages.at(-1))
  return undefined
}

/** The name of the tool whose request has expired. */
function expiredIn(messages: readonly UIMessage[], id: string | undefined): readonly string[] {
  return messages.flatMap(({ parts }) =>
    parts.flatMap((part) =>
      part.type === 'tool-call' && part.approval?.id === id && part.approval?.problem === 'approval-expired'
        ? [displayText(part.name).text]
        : [],
    ),
  )
}

function answerText(message: UIMessage | undefined): string | undefined {
  if (message?.role !== 'assistant') return undefined
  const texts = message.parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  return texts.length === 0 ? undefined : `Answer: ${texts.join(' ')}`
}

/**
 * Announces what is new in a chat from now on: `say` gets whole sentences for a polite live region. Returns a
 * function that stops it.
 */
export function announce(
  client: Pick<ChatClient, 'getSnapshot' | 'subscribe'>,
  say: (text: string) => void,
): () => void {
  const hear = (): Heard => {
    const { isLoading, pendingApprovals, interrupts, messages } = client.getSnapshot()
    return { isLoading, pending: pendingApprovals, questions: interrupts, messages }
  }
  let before = hear()
  return client.subscribe(() => {
    const now = hear()
    const text = announcement(before, now)
    before = now
    if (text !== undefined) say(text)
  })
}
