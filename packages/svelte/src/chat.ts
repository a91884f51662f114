import {
  type ChatActions,
  type ChatClient,
  type ChatSnapshot,
  createActions,
  type ToolMap,
  type Turn,
  turnsOf,
} from '@countersign/client'
import { untrack } from 'svelte'
import { keepFor, observe } from './reading.js'

/**
 * The snapshot's fields, its turns, the actions, and the client itself. An effect that reads a field runs again only when that
 * field changes. Destructuring a field gives a plain value; the actions are always the same functions and may be destructured.
 */
export type UseChat<Tools extends ToolMap = ToolMap> = ChatSnapshot<Tools> &
  ChatActions<Tools> & {
    /** The conversation for rendering: one turn per reply, the same object while nothing in it changes. */
    readonly turns: readonly Turn<Tools>[]
    readonly client: ChatClient<Tools>
  }

/** The chat of a client that may change. `follow` returns the same client, after applying its current options. */
export function createView<Tools extends ToolMap>(
  getClient: () => ChatClient<Tools>,
  follow: () => ChatClient<Tools>,
): UseChat<Tools> {
  const chat = createActions<Tools>((use) => use(untrack(follow)))
  const names = Object.keys(getClient().getSnapshot()) as (keyof ChatSnapshot<Tools>)[]
  for (const name of names) {
    const open = (client: ChatClient<Tools>) => observe(client, () => client.getSnapshot()[name])
    Object.defineProperty(chat, name, { enumerable: true, get: keepFor(getClient, open) })
  }
  return Object.defineProperties(chat, {
    turns: {
      enumerable: true,
      get(this: ChatSnapshot<Tools>) {
        return turnsOf(this.messages)
      },
    },
    client: { enumerable: true, get: getClient },
  }) as UseChat<Tools>
}
