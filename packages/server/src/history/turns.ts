import { frozen, type Message } from '@countersign/core'

/** What a part of a history becomes. */
interface Part<Item> {
  readonly items: readonly Item[]
  /** Whether nothing that follows changes it, and it changes nothing that follows: no call is open in it. */
  readonly isClosed: boolean
}

/**
 * Makes the items of the messages from `from` to `end`, of which the first is the user's, or the first of all. `with`: what it needs besides.
 */
type Make<Item, With> = (history: readonly Message[], from: number, end: number, more: With) => Part<Item>

/** What is known of the messages before one of the user's. */
interface Known<Item, With> {
  readonly messages: readonly Message[]
  readonly with: With
  readonly items: readonly Item[]
}

/** How many messages of the user are looked back for what is known. */
const TURNS_BACK = 4

/**
 * A function of a whole history that is made of its parts, and remembers what it made of all before the last message of the user. Between
 * requests a conversation only grows, and its stored messages are frozen: so a request costs as much as its own turn, and one comparison for
 * each message before it. Of a history that may still change, nothing is remembered.
 */
export function turnwise<Item, With = undefined>(
  make: Make<Item, With>,
): (history: readonly Message[], more: With) => readonly Item[] {
  /** By the last of the messages. */
  const known = new WeakMap<Message, Known<Item, With>>()

  function find(history: readonly Message[], end: number, more: With): Known<Item, With> | undefined {
    const last = history[end - 1]
    const found = last && known.get(last)
    if (found === undefined || found.with !== more || found.messages.length !== end) return undefined
    for (let index = 0; index < end; index++) if (found.messages[index] !== history[index]) return undefined
    return found
  }

  /** The items before the message `end` of the user; undefined if they must not be remembered. */
  function before(history: readonly Message[], end: number, more: With): readonly Item[] | undefined {
    const last = history[end - 1]
    if (last === undefined) return undefined
    let from = end
    let found = find(history, end, more)
    for (let turn = 0; found === undefined && turn < TURNS_BACK && from > 0; turn++) {
      from = lastUserBefore(history, from)
      found = find(history, from, more)
    }
    if (found !== undefined && from === end) return found.items
    const start = found === undefined ? 0 : from
    for (let index = start; index < end; index++) if (!Object.isFrozen(history[index])) return undefined
    const part = make(history, start, end, more)
    if (!part.isClosed) return undefined
    const items = found === undefined ? part.items : [...found.items, ...part.items]
    frozen(part.items)
    // The conversation has grown: what was known before is part of what is known now.
    const shorter = found && history[from - 1]
    if (shorter !== undefined) known.delete(shorter)
    known.set(last, { messages: history.slice(0, end), with: more, items })
    return items
  }

  return (history, more) => {
    const lastUser = lastUserBefore(history, history.length)
    const earlier = lastUser > 0 ? before(history, lastUser, more) : undefined
    if (earlier === undefined) return make(history, 0, history.length, more).items
    return [...earlier, ...make(history, lastUser, history.length, more).items]
  }
}

/** -1 if there is none. */
function lastUserBefore(history: readonly Message[], end: number): number {
  let index = end - 1
  while (index >= 0 && history[index]?.role !== 'user') index--
  return index
}
