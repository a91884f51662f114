import { foldMessages } from '../machine/fold.js'
import type { UIMessage } from '../messages.js'
import type { Message } from '../protocol/events.js'

/**
 * AG-UI messages as UI messages: what a stored or foreign history looks like to a person. Answers found in it are taken as its record;
 * whether they count is decided by the server alone.
 */
export function fromAGUIMessages(messages: readonly Message[]): UIMessage[] {
  return foldMessages(messages)
}
