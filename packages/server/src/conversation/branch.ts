import type { Message } from '@countersign/core'
import type { StoredMessage } from '../threads/thread-store.js'

/** A message in the tree of its thread. */
export type TreeMessage = Pick<StoredMessage, 'id' | 'parent'>

/** The messages of the branch that is shown, from its first to `head`. A broken or circular chain ends where it breaks. */
export function branchOf<M extends TreeMessage>({
  head,
  messages,
  byId = new Map(messages.map((message) => [message.id, message])),
}: {
  readonly head: string | null
  readonly messages: readonly M[]
  readonly byId?: ReadonlyMap<string, M> | undefined
}): readonly M[] {
  const branch: M[] = []
  let left = byId.size
  for (let id = head; id !== null && left-- > 0; ) {
    const message = byId.get(id)
    if (message === undefined) break
    branch.push(message)
    id = message.parent
  }
  // Below 0: the chain is circular.
  return (left < 0 ? [...new Set(branch)] : branch).reverse()
}

/** Messages as they are stored behind the message `last`. */
export function chain(messages: readonly Message[], last: string | null): readonly StoredMessage[] {
  return messages.map((message, index) => ({
    id: message.id,
    parent: messages[index - 1]?.id ?? last,
    message: JSON.stringify(message),
  }))
}
