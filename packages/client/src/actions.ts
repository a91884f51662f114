import type { ToolMap } from '@countersign/core'
import { actionNames, type ChatActions, type ChatClient } from './client.js'

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
  return Object.fromEntries(actionNames.map((name) => [name, act(name)])) as ChatActions<Tools>
}
