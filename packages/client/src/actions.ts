import type { ToolMap } from '@countersign/core'
import type { ChatActions, ChatClient } from './client.js'

/**
 * The actions of whatever client it is when they are called, in one object that stays the same. For pages that are set up once: what
 * they take out of it still acts on the chat that is shown after the thread has changed. `withClient` calls back with that client.
 */
export function createActions<Tools extends ToolMap>(
  withClient: (use: (client: ChatClient<Tools>) => unknown) => unknown,
): ChatActions<Tools> {
  const act =
    (name: keyof ChatActions<Tools>) =>
    (...given: unknown[]) =>
      withClient(({ actions }) => Reflect.apply(actions[name], undefined, given))
  const actions: Record<string, unknown> = {}
  withClient((client) => {
    for (const name of Object.keys(client.actions)) actions[name] = act(name as keyof ChatActions<Tools>)
  })
  return actions as ChatActions<Tools>
}
