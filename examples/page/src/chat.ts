import { ChatClient, type ChatClientOptions } from '@countersign/client'
import { checkResponse } from '@countersign/client/response-schema'
import type { ThreadList } from '@countersign/client/thread-list'
import { addressOf, shownThread } from './address.js'
import { server } from './connection.js'
import { showDevtools } from './devtools.js'
import { editableTools } from './edit-fit.js'
import { ignoreSecondClicks } from './second-click.js'

type Server = Pick<ChatClientOptions, 'connection' | 'persistence'> & {
  readonly list?: ThreadList
  /** Where the server previews edited arguments. */
  readonly edits?: string
}
const { list: threads, edits, ...options }: Server = server

/** The user's conversations; undefined if the server has no list of them. */
export const list = threads

/** The URL where the server previews edited arguments; undefined if it does not. */
export const editsUrl = edits

/** The conversation that the page shows: that of its address, or a new one. */
export const client = new ChatClient({
  ...options,
  ...shownThread(),
  checkResponse,
  serverTools: editableTools,
})

/**
 * Render once this has resolved, so that a reloaded page starts with its conversation and not with an empty
 * one. Waits at most 300 ms for a slow server.
 */
export async function opened(): Promise<void> {
  ignoreSecondClicks()
  client.attach()
  client.subscribe(keepAddress)
  await Promise.race([client.restore(), new Promise((resolve) => setTimeout(resolve, 300))])
  await showDevtools(client)
}

/** A new conversation gets its address with its first message. */
function keepAddress(): void {
  const { messages, threadId } = client.getSnapshot()
  const address = addressOf(threadId)
  if (messages.length > 0 && location.pathname + location.search !== address)
    history.replaceState(null, '', address)
}
