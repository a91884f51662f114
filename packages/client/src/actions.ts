import type { ToolMap } from '@countersign/core'
import { actionNames, type ChatActions, type ChatClient } from './client.js'

/**
 * One stable object of actions that always act on the current client. For pages that are set up once: actions taken from it
 * still act on the chat that is shown after the thread has changed. `withClient` passes the current client to its callback.
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
