import { isCountersignError, type RunAgentInput } from '@countersign/core'
import type { Connection } from './connections/connection.js'
import { withCountersignProps } from './connections/own-props.js'

/**
 * For a server that keeps the conversations (`createAgent({ threads })`): each request brings only the messages that the server does not
 * have, those after its own last message, so its size does not grow with the conversation. The request names the last user message that
 * the server has replied to in `forwardedProps.countersign.after`; a server that does not know it refuses the request with
 * `thread-unknown` (HTTP 404) and takes nothing. If the server accepts uploads (`acceptUploads`), the request is then sent again with the whole
 * conversation. Everything else about the connection stays as it is.
 *
 * @example const connection = serverHistory(fetchServerSentEvents('/api/chat'))
 */
export function serverHistory(connection: Connection): Connection {
  return {
    ...connection,
    async *connect(input, options) {
      try {
        yield* connection.connect(withoutKnown(input), options)
      } catch (error) {
        if (!mayUpload(error)) throw error
        yield* connection.connect(withCountersignProps(input, { upload: true }), options)
      }
    },
  }
}

function mayUpload(error: unknown): boolean {
  return (
    isCountersignError(error) && error.data.status === 404 && `${error.data.body}`.includes('"upload":true')
  )
}

function withoutKnown(input: RunAgentInput): RunAgentInput {
  const { messages: all } = input
  const last = all.findLastIndex(({ role }) => role === 'assistant')
  const messages = all.slice(last + 1)
  // Not the reply itself: after a crash, the server may lack what it had sent in its last second.
  const after = all.slice(0, last + 1).findLast(({ role }) => role === 'user')?.id
  // A server that has more than `last` had its reply lost on the way, and sends the conversation again.
  return after === undefined
    ? { ...input, messages }
    : withCountersignProps({ ...input, messages }, { after, last: all[last]?.id })
}
