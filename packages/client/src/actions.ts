import type { ToolMap } from '@countersign/core'
import type { ChatActions, ChatClient } from './client.js'

export const actionNames = [
  'sendMessage',
  'cancelQueued',
  'addToolApprovalResponse',
  'addToolResult',
  'respondToInterrupt',
  'stop',
  'retry',
  'resume',
  'regenerate',
  'clear',
  'setMessages',
] as const satisfies readonly (keyof ChatActions)[]

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
