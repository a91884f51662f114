import { type Message, toAGUIMessages, type UIMessage } from '@countersign/core'
import type { StoredMessage, StoredThread } from '../threads/thread-store.js'

/** The messages of the branch that is shown, from its first to `head`. A broken or circular chain ends where it breaks. */
export function branchOf({
  head,
  messages,
}: Pick<StoredThread, 'head' | 'messages'>): readonly StoredMessage[] {
  const byId = new Map(messages.map((message) => [message.id, message]))
  const branch: StoredMessage[] = []
  for (let id = head; id !== null; ) {
    const message = byId.get(id)
    if (message === undefined) break
    byId.delete(id)
    branch.push(message)
    id = message.parent
  }
  return branch.reverse()
}

/** Messages as they are stored behind the message `last`. */
export function chain(messages: readonly Message[], last: string | null): readonly StoredMessage[] {
  return messages.map((message, index) => ({
    id: message.id,
    parent: messages[index - 1]?.id ?? last,
    message: JSON.stringify(message),
  }))
}

/** What must be stored so that the branch becomes `current`. */
export interface BranchChange {
  readonly messages: readonly StoredMessage[]
  readonly head: string | null
}

interface Stored {
  readonly parent: string | null
  readonly text: string
}

/** A message of the user interface: the stored message before it, and its own last one. */
interface Place {
  readonly before: string | null
  readonly last: string | null
}

/**
 * Finds what has changed in a conversation since it was stored. A message that is the same object as before costs one comparison; only
 * the others are converted.
 */
export class BranchDiff {
  readonly #stored: Map<string, Stored>
  readonly #places = new WeakMap<UIMessage, Place>()

  /** `branch` is what is stored, `current` the same conversation. What is stored is not rewritten until it changes. */
  constructor(branch: readonly StoredMessage[], current: readonly UIMessage[]) {
    this.#stored = new Map(branch.map(({ id, parent, message }) => [id, { parent, text: message }]))
    let before: string | null = null
    for (const message of current) {
      const first: string | null = before
      let isInPlace = true
      for (const { id } of toAGUIMessages([message])) {
        isInPlace &&= this.#stored.get(id)?.parent === before
        before = id
      }
      // A result that was stored after a later message is moved to its call.
      if (isInPlace) this.#places.set(message, { before: first, last: before })
    }
  }

  /** What has changed; undefined if nothing has. Call `commit` once it is stored. */
  next(current: readonly UIMessage[]): (BranchChange & { commit(): void }) | undefined {
    const messages: StoredMessage[] = []
    const places: (readonly [UIMessage, Place])[] = []
    let before: string | null = null
    for (const message of current) {
      const place = this.#places.get(message)
      if (place !== undefined && place.before === before) {
        before = place.last
        continue
      }
      const first: string | null = before
      for (const part of toAGUIMessages([message])) {
        const text = JSON.stringify(part)
        const stored = this.#stored.get(part.id)
        if (stored?.text !== text || stored.parent !== before)
          messages.push({ id: part.id, parent: before, message: text })
        before = part.id
      }
      places.push([message, { before: first, last: before }])
    }
    if (messages.length === 0) return undefined
    const commit = () => {
      for (const { id, parent, message } of messages) this.#stored.set(id, { parent, text: message })
      for (const [message, place] of places) this.#places.set(message, place)
    }
    return { messages, head: before, commit }
  }
}
