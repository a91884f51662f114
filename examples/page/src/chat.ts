import { ChatClient, type ChatClientOptions } from '@countersign/client'
import { checkResponse } from '@countersign/client/response-schema'
import type { ThreadList } from '@countersign/client/thread-list'
import { type EditSettings, ignoreSecondClicks } from '@countersign/client/ui'
import { addressOf, shownThread } from './address.js'
import { server } from './connection.js'
import { showDevtools } from './devtools.js'
import { sendEmail, writeFile } from './tools.js'

type Server = Pick<ChatClientOptions, 'connection' | 'persistence'> & {
  readonly list?: ThreadList
  /** Where the server previews edited arguments. */
  readonly edits?: string
}
const { list: threads, edits: previewUrl, ...options }: Server = server

/** The user's conversations; undefined if the server has no list of them. */
export const list = threads

/** The tools whose arguments may be edited; another server than the demo's may have tools that are not in this list. */
export const edits: EditSettings = { tools: [writeFile, sendEmail], previewUrl }

/** The conversation that the page shows: that of its address, or a new one. */
export const client = new ChatClient({
  ...options,
  ...shownThread(),
  checkResponse,
  serverTools: edits.tools,
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
