import type { Message } from '@countersign/core'
import { APPROVAL_TOOL } from '../gate/approval-tool.js'
import { readCalls } from '../history/history.js'
import type { Toolkit } from '../tools/toolkit.js'

/**
 * The stored conversation with what a request may add to it: new messages of the user, and results of calls that the client runs.
 * Everything else that the request claims is ignored. A result with an id that the conversation has already gets a new one. `known` are
 * the ids of messages on all branches: a user message of another one is not new.
 */
export function mergeHistory(
  stored: readonly Message[],
  given: readonly Message[],
  toolkit: Toolkit,
  known: { has(id: string): boolean },
  newId: () => string,
): Message[] {
  const ids = new Set<string>()
  const isKnown = (id: string) => known.has(id) || ids.has(id)
  const waiting = new Set(
    readCalls(stored).flatMap(({ call, result }) =>
      result === undefined && isClients(call.function.name, toolkit) ? [call.id] : [],
    ),
  )
  const added = given.flatMap((message): Message[] => {
    if (message.role === 'user') {
      if (isKnown(message.id)) return []
      ids.add(message.id)
      return [message]
    }
    if (message.role !== 'tool' || !waiting.delete(message.toolCallId)) return []
    const id = isKnown(message.id) ? newId() : message.id
    ids.add(id)
    return [{ ...message, id }]
  })
  return [...stored, ...added]
}

/** Whether the client has the result of such calls. */
function isClients(name: string, toolkit: Toolkit): boolean {
  return name === APPROVAL_TOOL || toolkit.get(name)?.location === 'client'
}
