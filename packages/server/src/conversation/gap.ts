import type { Message } from '@countersign/core'

/** What the page of a request lacks of the stored conversation. */
export interface Gap {
  /** Whether the page must be sent the conversation: it lacks calls, results, or messages of another page. */
  readonly isBehind: boolean
  /** How many of the last messages are answers without calls that the page does not have: a request without a new message asks for them anew. */
  readonly unseen: number
}

const none: Gap = { isBehind: false, unseen: 0 }

/**
 * Compares the stored conversation with that of a page, from the first message that both have. `last` is the last message that the page has
 * but did not send. Nothing can be said about a page that sent only new messages.
 */
export function gapOf(stored: readonly Message[], given: readonly Message[], last: string | undefined): Gap {
  const ids = new Set(given.map(({ id }) => id))
  const results = new Set(given.flatMap((message) => (message.role === 'tool' ? message.toolCallId : [])))
  const from =
    last === undefined
      ? stored.findIndex(({ id }) => ids.has(id))
      : stored.findLastIndex(({ id }) => id === last)
  if (from < 0) return none
  const rest = stored.slice(from + 1)
  const isLacking = (message: Message) =>
    /^(user|assistant|tool)$/.test(message.role) &&
    !ids.has(message.id) &&
    !(message.role === 'tool' && results.has(message.toolCallId))
  const lacking = rest.filter(isLacking)
  const spoken = rest.findLastIndex(({ role }) => role === 'user')
  const knowsTurn = !rest.some((message, at) => at <= spoken && isLacking(message))
  const seen = rest.findLastIndex((message) => !(isLacking(message) && isText(message)))
  const unseen = knowsTurn ? rest.length - 1 - seen : 0
  return { isBehind: lacking.length > unseen, unseen }
}

function isText(message: Message): boolean {
  return message.role === 'assistant' && (message.toolCalls ?? []).length === 0
}
