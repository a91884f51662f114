// @vitest-environment jsdom
import {
  ChatClient,
  type ChatClientOptions,
  fetchServerSentEvents,
  type InitialThread,
} from '@countersign/client'
import { type ServerThreads, serverThreads } from '@countersign/client/server-threads'
import { useChat } from '@countersign/react'
import { loadThread } from '@countersign/server'
import { act } from '@testing-library/react'
import { StrictMode } from 'react'
import { hydrateRoot } from 'react-dom/client'
import { renderToString } from 'react-dom/server'
import { expect, onTestFinished, test, vi } from 'vitest'
import { memoryPersistence } from './fake-browser.js'
import { calls, startServer, stop, words } from './threads-server.js'

// A server component loads the conversation, the page is rendered from it, and continues it.

interface Given {
  readonly threads: ServerThreads
  readonly initialThread?: InitialThread | undefined
  readonly initialMessages?: InitialThread['messages'] | undefined
}

/** The component in the page ('use client'). */
function Chat(given: Given) {
  const { threads, ...initial } = given
  const chat = useChat({ ...threads, ...initial, threadId: 't', notify: 'sync' })
  const approve = (id: string) => void chat.addToolApprovalResponse({ id, approved: true })
  return (
    <main data-status={chat.status}>
      {chat.messages.map(({ id, role, parts }) => (
        <p key={id}>
          {role}:{' '}
          {parts
            .map((part) => (part.type === 'text' ? part.text : part.type === 'tool-call' ? part.state : ''))
            .join('')}
        </p>
      ))}
      {chat.pendingApprovals.map(({ id, approval }) => (
        <button type="button" key={id} onClick={() => approve(approval.id)}>
          Approve
        </button>
      ))}
    </main>
  )
}

function open(server: ReturnType<typeof startServer>) {
  const requests: string[] = []
  const fetch: typeof globalThis.fetch = (input, init) => {
    const { signal: _, ...rest } = init ?? {}
    requests.push(rest.method ?? '')
    return server.handle(new Request(input, rest))
  }
  const options = { fetch, local: memoryPersistence(), pollEvery: 600_000 }
  const threads = serverThreads('http://server.test/chat', options)
  /** The server component: what it hands to a component of the page becomes JSON on the way. */
  async function load(): Promise<Omit<Given, 'threads'>> {
    const initialThread = await loadThread(server.agent, { subject: 'ada', threadId: 't' })
    return JSON.parse(JSON.stringify({ initialThread }))
  }
  async function hydrate(given: Omit<Given, 'threads'>) {
    const page = (
      <StrictMode>
        <Chat threads={threads} {...given} />
      </StrictMode>
    )
    const errors = vi.spyOn(console, 'error')
    const html = renderToString(page)
    const root = document.createElement('div')
    root.innerHTML = html
    document.body.replaceChildren(root)
    const before = root.querySelector('main')
    const onRecoverableError = vi.fn()
    const hydrated = await act(async () => hydrateRoot(root, page, { onRecoverableError }))
    onTestFinished(() => act(() => hydrated.unmount()))
    expect([errors.mock.calls, onRecoverableError.mock.calls]).toEqual([[], []])
    expect(root.querySelector('main')).toBe(before)
    return { html, root }
  }
  return { load, hydrate, requests, threads }
}

async function talk(server: ReturnType<typeof startServer>, ...texts: string[]) {
  const { threads } = open(server)
  const client = new ChatClient({ ...threads, threadId: 't' })
  for (const text of texts) await client.sendMessage(text)
  client.dispose()
}

const linesOf = (root: HTMLElement) => [...root.querySelectorAll('p')].map((line) => line.textContent)

test('T11 a page rendered from loadThread hydrates without a warning and without a request, and goes on', async () => {
  const server = startServer(
    () => [words('One.'), stop],
    () => [words('Two.'), stop],
  )
  await talk(server, 'Hello')
  const { load, hydrate, requests } = open(server)
  const { html, root } = await hydrate(await load())
  expect(html).toContain('One.')
  expect(linesOf(root)).toEqual(['user: Hello', 'assistant: One.'])
  expect(requests).toEqual([])
  await talk(server, 'And now?')
  // The page notices when its user returns.
  await act(async () => window.dispatchEvent(new Event('focus')))
  await vi.waitUntil(() => act(async () => linesOf(root).length === 4))
  expect(linesOf(root).at(-1)).toBe('assistant: Two.')
})

test('T11 with an approval pending: the card is in the HTML, hydrates without a request, and its answer is the first one', async () => {
  const server = startServer(
    () => calls('send', { to: 'ada' }),
    () => [words('Sent.'), stop],
  )
  await talk(server, 'Send it')
  const { load, hydrate, requests } = open(server)
  const { html, root } = await hydrate(await load())
  expect(html).toContain('data-status="awaiting-approval"')
  expect(html).toContain('<button type="button">Approve</button>')
  expect(requests).toEqual([])
  await act(async () => root.querySelector('button')?.click())
  await vi.waitUntil(() => act(async () => linesOf(root).at(-1) === 'assistant: Sent.'))
  expect(requests).toEqual(['POST'])
  expect(server.executed).toEqual(['ada'])
})

test('T11 a run that was open when the page was rendered is rejoined, and complete', async () => {
  let go = () => {}
  const going = new Promise<void>((resolve) => {
    go = resolve
  })
  const server = startServer(async function* () {
    yield words('One, ')
    await going
    yield words('two.')
    yield stop
  })
  const first = open(server)
  const client = new ChatClient({ ...first.threads, threadId: 't' })
  onTestFinished(() => client.dispose())
  const sending = client.sendMessage('Count')
  const key = { owner: 'ada', threadId: 't' }
  await vi.waitUntil(async () => ((await server.agent.threads?.load(key))?.messages.length ?? 0) > 1)
  const { load, hydrate, requests } = open(server)
  const { html, root } = await hydrate(await load())
  expect(html).toContain('One, ')
  go()
  await sending
  await vi.waitUntil(() => act(async () => linesOf(root).at(-1) === 'assistant: One, two.'))
  // It rejoins the run; nothing else is loaded.
  expect(requests).toEqual(['GET'])
})

test('T11 initialMessages alone work too: the page shows them, and loads what it does not know of them', async () => {
  const server = startServer(() => [words('One.'), stop])
  await talk(server, 'Hello')
  const { load, hydrate, requests } = open(server)
  const { initialThread } = await load()
  const { html, root } = await hydrate({ initialMessages: initialThread?.messages })
  expect(html).toContain('One.')
  await vi.waitUntil(() => requests.length > 0)
  await act(async () => {})
  expect([requests, linesOf(root)]).toEqual([['GET'], ['user: Hello', 'assistant: One.']])
})

test('T11 a conversation that does not exist yet has nothing to load on the server', async () => {
  const server = startServer(() => [words('One.'), stop])
  const { load, hydrate } = open(server)
  const given = await load()
  expect(given).toEqual({})
  expect(linesOf((await hydrate(given)).root)).toEqual([])
})

test.each<[string, Partial<ChatClientOptions>]>([
  ['without a store', {}],
  ['with serverThreads', serverThreads('http://server.test/chat', { local: memoryPersistence() })],
])('a new conversation %s is rendered without making an id', (_, kept) => {
  const generateId = vi.fn(() => 'random')
  const New = () => (
    <p>{useChat({ connection: fetchServerSentEvents('/chat'), ...kept, generateId }).threadId}</p>
  )
  expect(renderToString(<New />)).toBe('<p></p>')
  expect(generateId).not.toHaveBeenCalled()
})
