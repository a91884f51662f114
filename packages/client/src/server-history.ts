import { isRecord, type RunAgentInput } from '@countersign/core'
import type { Connection } from './connections/connection.js'

/**
 * For a server that keeps the conversations (`createAgent({ threads })`): each request brings only the messages that the server does not
 * have, those after its own last message, so its size does not grow with the conversation. The request names the last user message that
 * the server has replied to in `forwardedProps.countersign.after`; a server that does not know it refuses the request with
 * `thread-unknown` (HTTP 404) and takes nothing. Everything else about the connection stays as it is.
 *
 * @example const connection = serverHistory(fetchServerSentEvents('/api/chat'))
 */
export function serverHistory(connection: Connection): Connection {
  return { ...connection, connect: (input, options) => connection.connect(withoutKnown(input), options) }
}

function withoutKnown(input: RunAgentInput): RunAgentInput {
  const { messages: all, forwardedProps } = input
  const last = all.findLastIndex(({ role }) => role === 'assistant')
  const messages = all.slice(last + 1)
  // Not the reply itself: after a crash, the server may lack what it had sent in its last second.
  const after = all.slice(0, last + 1).findLast(({ role }) => role === 'user')?.id
  if (after === undefined) return { ...input, messages }
  const own = isRecord(forwardedProps) ? forwardedProps : {}
  // A server that has more than this had its reply lost on the way, and sends the conversation again.
  const countersign = { ...(isRecord(own.countersign) && own.countersign), after, last: all[last]?.id }
  return { ...input, messages, forwardedProps: { ...own, countersign } }
}
