import { CountersignError } from '@countersign/core'
import type { AnswerChannel } from './answer-channel.js'

/**
 * A channel whose failures are logged. A failure to close stops nothing, because the run has ended by then. An answer that can't be
 * delivered rejects with `ledger-unavailable`, and can be sent again.
 */
export function failSafeAnswerChannel(
  channel: AnswerChannel,
  warn: (message: string, error: unknown) => void,
): AnswerChannel {
  return {
    async open(runKey, receive) {
      try {
        const close = await channel.open(runKey, receive)
        return () =>
          close().catch((error: unknown) => warn('The answer channel of a run could not be closed.', error))
      } catch (error) {
        warn('The answer channel could not be opened; the run takes no live answers.', error)
        throw error
      }
    },
    async deliver(runKey, entries, context) {
      try {
        return await channel.deliver(runKey, entries, context)
      } catch (error) {
        warn('The answer channel could not be reached; an answer was not delivered.', error)
        const message = 'Answers cannot be taken at the moment; send it again.'
        throw new CountersignError('ledger-unavailable', message, { status: 503 }, error)
      }
    },
  }
}
