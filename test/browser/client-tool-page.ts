import { ChatClient } from '../../packages/client/src/client.js'
import { fetchServerSentEvents } from '../../packages/client/src/connections/fetch.js'
import { indexedDb } from '../../packages/client/src/indexed-db.js'
import { tabs } from '../../packages/client/src/tabs.js'
import { clientTool } from '../../packages/core/src/tools.js'

declare global {
  var chat: ChatClient
}

/** Takes anything: the tool's arguments are not what is tested. */
const anything = {
  '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) },
} as const

/** The server counts its runs, and lets each of them take a while. */
const ring = clientTool({
  name: 'ring',
  description: 'Rings the bell of this browser',
  input: anything,
  execute: async () => (await fetch('/ran', { method: 'POST', keepalive: true })).text(),
})

globalThis.chat = new ChatClient({
  connection: fetchServerSentEvents('/chat'),
  threadId: 'one',
  tools: [ring],
  persistence: indexedDb(),
  tabs: tabs(),
})
globalThis.chat.attach()
