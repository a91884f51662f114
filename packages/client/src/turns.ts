import type { MessagePart, ToolMap, UIMessage } from '@countersign/core'
import { unsafeCast } from './session.js'

/** What one side says without the other in between: a person's message, or an answer with all of its steps. */
export interface Turn<Tools extends ToolMap = ToolMap> {
  /** The id of its first message. `regenerate({ messageId: turn.id })` asks for this answer again. */
  readonly id: string
  readonly role: UIMessage['role']
  /** The parts of all its messages, in order. */
  readonly parts: readonly MessagePart<Tools>[]
  /** The AG-UI messages it is made of. */
  readonly messages: readonly UIMessage<Tools>[]
}

/**
 * Messages as turns: assistant messages that follow each other are one turn, every other message is a turn of its own. Messages are
 * immutable, so the same list gives the same turns, and a turn whose messages are the same objects is the same object for everybody who
 * asks: memoize on it. What `useChat().turns` gives; costs nothing until it is called.
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

/** The turns of a list, and the turn that ends with a message. Nothing is kept here that nobody else holds. */
const memo = /* @__PURE__ */ new WeakMap<object, unknown>()
