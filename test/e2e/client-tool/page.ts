// A page with one client tool, for `client-tool.test.ts`: the tool counts its runs in the storage of the browser, and waits.
import { ChatClient } from '@countersign/client'
import { serverThreads } from '@countersign/client/server-threads'
import { locate } from './tool.js'

/** What a test does on the page. */
export interface ToolPage {
  send(): void
  retry(): void
}

declare global {
  var toolPage: ToolPage
}

const tool = locate.client(async () => {
  localStorage.runs = Number(localStorage.runs ?? 0) + 1
  return new Promise<string>(() => {})
})
const client = new ChatClient({
  ...serverThreads('/chat', { pollEvery: 200, delay: 50 }),
  ...{ threadId: 't', tools: [tool], onError: () => {} },
})
globalThis.toolPage = {
  send: () => void client.sendMessage('Where am I?'),
  retry: () => void client.retry(),
}
client.subscribe(() => {
  const { status, messages } = client.getSnapshot()
  const parts = messages.flatMap((message) => message.parts)
  const shown = parts.map((part) => {
    if (part.type === 'text') return part.text
    return part.type === 'tool-call' ? `${part.name} ${part.error?.code ?? part.state}` : part.type
  })
  const pre = document.querySelector('pre')
  if (pre) pre.textContent = [...shown, status].join('\n')
})
client.attach()
