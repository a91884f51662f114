import type { AnswerChannel } from './answer-channel.js'

/** A channel whose failures are told, and where closing stops nothing: the run has come to its end by then. */
export function carefulAnswerChannel(
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
    deliver: (runKey, entries) => channel.deliver(runKey, entries),
  }
}
