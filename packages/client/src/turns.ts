import type { MessagePart, ToolMap, UIMessage } from '@countersign/core'
import { unsafeCast } from './session.js'

/** A user message, or a reply with all of its steps. */
export interface Turn<Tools extends ToolMap = ToolMap> {
  /** The id of its first message. `regenerate({ messageId: turn.id })` requests this reply again. */
  readonly id: string
  readonly role: UIMessage['role']
  /** The AG-UI messages it consists of. First, so that TypeScript compares turns by their parts, as it does messages. */
  readonly messages: readonly UIMessage<Tools>[]
  /** The parts of all its messages, in order. */
  readonly parts: readonly MessagePart<Tools>[]
}

/**
 * Groups messages into turns: consecutive assistant messages are one turn, every other message is a turn of its
 * own. Messages are immutable, so the same list gives the same turns, and a turn of the same message objects is
 * the same object for every caller: memoize on it. `useChat().turns` returns this; it costs nothing until called.
 *
 * @example
 * const turns = turnsOf(client.getSnapshot().messages)
 */
export function turnsOf<Tools extends ToolMap = ToolMap>(
  messages: readonly UIMessage<Tools>[],
): readonly Turn<Tools>[] {
  const known = memo.get(messages)
  if (known) return unsafeCast(known)
  const turns: Turn<Tools>[] = []
  for (let end = 0, first = messages[0]; first; first = messages[end]) {
    const start = end++
    while (first.role === 'assistant' && messages[end]?.role === 'assistant') end++
    const last = messages[end - 1] ?? first
    let turn: Turn<Tools> | undefined = unsafeCast(memo.get(last))
    if (
      turn?.messages.length !== end - start ||
      turn.messages.some((message, at) => message !== messages[start + at])
    ) {
      const { id, role, parts } = first
      const own = messages.slice(start, end)
      turn = {
        id,
        role,
        parts: first === last ? parts : own.flatMap((message) => message.parts),
        messages: own,
      }
      memo.set(last, turn)
    }
    turns.push(turn)
  }
  memo.set(messages, turns)
  return turns
}

/** Caches the turns of a list, and the turn that ends with a message. Weak, so it retains nothing. */
const memo = /* @__PURE__ */ new WeakMap<object, unknown>()
