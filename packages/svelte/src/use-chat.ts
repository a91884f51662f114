import type { ChatClient, ToolMap } from '@countersign/client'
import { onDestroy, untrack } from 'svelte'
import { createView, type UseChat } from './chat.js'
import { createOwn, type Given, getProvided, type Own, reader } from './provider.js'
import { createFinding, type Reading, toReading } from './reading.js'

/**
 * The chat of a component, or of a module that components share. `createChat()` reads `setChat`; `createChat({ client })` shares a
 * client; `createChat(options)` creates one or, below `setChat`, uses the provided client of that `threadId`. Changed options are
 * applied if they are `$state` or a function. Another `threadId` is another client, never a reset; switching back returns to the first.
 * The run continues when no effect reads it any more, and the returned actions still reach it; the option `onDetach: 'stop'` stops it.
 */
export function createChat<Tools extends ToolMap = ToolMap>(options?: Given<Tools>): UseChat<Tools> {
  const provided = getProvided<Tools>()
  if (!provided) return createOwn(options ?? {}).chat
  return options ? createBelow(provided, options) : provided.chat
}

/** The client itself, for code that subscribes on its own. */
export function useChatClient<Tools extends ToolMap = ToolMap>(
  options?: Given<Tools>,
): Reading<ChatClient<Tools>> {
  const chat = createChat(options)
  return toReading(() => chat.client)
}

function createBelow<Tools extends ToolMap>(provided: Own<Tools>, options: Given<Tools>): UseChat<Tools> {
  const read = reader(options)
  const page = {}
  let last: ChatClient<Tools> | undefined
  const leave = () => last && untrack(provided.find).leave(last, page)
  onDestroy(leave)
  const find = () => {
    const { client, ...own } = read()
    return client ?? provided.find().get(own)
  }
  const follow = () => {
    const { client: shared, ...own } = read()
    if (shared) return shared
    const clients = provided.follow()
    const client = clients.get(own)
    if (last !== client) leave()
    clients.follow(client, page, own)
    last = client
    return client
  }
  return createView(createFinding(find, follow), follow)
}
