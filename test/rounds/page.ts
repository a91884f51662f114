// The page of `rounds.ts`: one conversation that its server keeps, as `globalThis.roundsPage`. The address names the conversation.
import { ChatClient } from '@countersign/client'
import { serverThreads } from '@countersign/client/server-threads'

/** What the page shows, in JSON. */
export interface Shown {
  readonly status: string
  readonly error: string | undefined
  readonly queued: number
  /** Ids of the open approval requests. */
  readonly pending: readonly string[]
  /** Calls by id, with the state that the page shows. */
  readonly calls: Readonly<Record<string, string>>
  /** A text for each message, in order, with who said it. */
  readonly texts: readonly string[]
}

interface RoundsPage {
  shown(): Shown
  send(text: string): void
  answer(approved: boolean): void
  retry(): void
}

declare global {
  var roundsPage: RoundsPage
}

const threadId = new URLSearchParams(location.search).get('thread') ?? 'thread'
const threads = serverThreads('/chat', { pollEvery: 200, delay: 50, heartbeat: 1000, attempts: 6 })
const client = new ChatClient({ ...threads, threadId, onError: () => {}, onWarning: () => {} })

globalThis.roundsPage = {
  shown() {
    const { status, error, queue, pendingApprovals, messages } = client.getSnapshot()
    const calls: Record<string, string> = {}
    const texts = messages.map(({ role, parts }) => {
      const said = parts.map((part) => {
        if (part.type === 'text') return part.text
        if (part.type === 'tool-call') calls[part.id] = part.error?.code ?? part.state
        return part.type === 'tool-call' ? `[${part.id}]` : ''
      })
      return `${role}: ${said.join('')}`
    })
    const pending = pendingApprovals.map(({ approval }) => approval.id)
    return { status, error: error?.code, queued: queue.length, pending, calls, texts }
  },
  send: (text) => void client.sendMessage(text),
  answer(approved) {
    for (const { approval } of client.getSnapshot().pendingApprovals)
      void client.addToolApprovalResponse({ id: approval.id, approved })
  },
  retry: () => void client.retry(),
}
client.subscribe(() => {
  const pre = document.querySelector('pre')
  if (pre) pre.textContent = JSON.stringify(globalThis.roundsPage.shown(), null, 1)
})
client.attach()
