import { ChatClient } from '@countersign/client'
import { indexedDb } from '@countersign/client/indexed-db'
import { checkResponse } from '@countersign/client/response-schema'
import { tabs } from '@countersign/client/tabs'
import { connection } from './connection.js'
import { showDevtools } from './devtools.js'
import { ignoreSecondClicks } from './second-click.js'

/** The page's one conversation. It survives a reload, and every tab of this browser shows it. */
export const client = new ChatClient({
  connection,
  threadId: keptThreadId(),
  persistence: indexedDb(),
  tabs: tabs(),
  checkResponse,
})

/**
 * Render once this has resolved, so that a reloaded page starts with its conversation and not with an empty
 * one. Waits at most 300 ms for slow storage or another tab.
 */
export async function opened(): Promise<void> {
  ignoreSecondClicks()
  client.attach()
  await Promise.race([client.restore(), new Promise((resolve) => setTimeout(resolve, 300))])
  await showDevtools(client)
}

/** The same in every tab and after a reload; a new one if the browser blocks storage. */
function keptThreadId(): string {
  const fresh = Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join('-')
  try {
    const kept = localStorage.getItem('thread')
    if (kept) return kept
    localStorage.setItem('thread', fresh)
  } catch {
    // The browser blocks storage. The chat works, but a reload starts a new one.
  }
  return fresh
}
