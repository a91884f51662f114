import { foldMessages } from '../machine/fold.js'
import type { UIMessage } from '../messages.js'
import type { Message } from '../protocol/events.js'

/**
 * Converts AG-UI messages, such as a stored history or one from another system, to UI messages. Answers in it
 * are taken over as a record only; whether they count is up to the server.
 */
export function fromAGUIMessages(messages: readonly Message[]): UIMessage[] {
  return foldMessages(messages)
}
