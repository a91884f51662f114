import { ChatClient, type UIMessage } from '@countersign/client'
import { resolve, scriptedConnection, text } from '@countersign/testing'
import {
  provideChat,
  useChat,
  useChatSelector,
  useMessage,
  useMessageIds,
  usePendingApprovals,
} from '@countersign/vue'
import { expect, test, vi } from 'vitest'
import { createSSRApp, defineComponent, h, ref, Suspense } from 'vue'
import { renderToString } from 'vue/server-renderer'
import { after, component, expectNoWarnings, mount } from './stage.js'

expectNoWarnings()

const initialMessages: readonly UIMessage[] = [
  { id: 'u', role: 'user', parts: [{ type: 'text', text: 'tidy up' }] },
  {
    id: 'm',
    role: 'assistant',
    parts: [
      {
        type: 'tool-call',
        id: 'c',
        name: 'delete_file',
        arguments: '{"path":"old.log"}',
        input: { path: 'old.log' },
        state: 'approval-requested',
        approval: {
          id: 'a-c',
          needsApproval: true,
          options: ['deny', 'once'],
          token: 'token-c',
          expiresAt: '2999-01-01T00:00:00.000Z',
        },
      },
    ],
  },
]

const Message = defineComponent({
  props: { id: { type: String, required: true } },
  setup(props) {
    const message = useMessage(() => props.id)
    return () => h('li', JSON.stringify(message.value?.parts))
  },
})

const Page = component(() => {
  const { status } = useChat()
  const [ids, pending] = [useMessageIds(), usePendingApprovals()]
  const count = useChatSelector(({ messages }) => messages.length)
  return () => [
    h('output', `${status.value}: ${pending.value.length} of ${count.value}`),
    h(
      'ol',
      ids.value.map((id) => h(Message, { key: id, id })),
    ),
  ]
})

const appOn = (client: ChatClient) =>
  component(() => {
    provideChat({ client })
    return () => h(Page)
  })

function served(html: string): HTMLElement {
  const container = document.createElement('div')
  container.innerHTML = html
  document.body.replaceChildren(container)
  return container
}

test('S4.89 a server renders the beginning, attaches to nothing, and starts neither request nor timer', async () => {
  const server = scriptedConnection([])
  const client = new ChatClient({ connection: server, initialMessages })
  const spies = [
    vi.spyOn(client, 'attach'),
    vi.spyOn(client, 'subscribe'),
    vi.spyOn(client, 'subscribeMessage'),
  ]
  await renderToString(createSSRApp(appOn(client)))
  const timers = [
    vi.spyOn(globalThis, 'setTimeout'),
    vi.spyOn(globalThis, 'setInterval'),
    vi.spyOn(globalThis, 'fetch'),
  ]
  const html = await renderToString(createSSRApp(appOn(client)))
  for (const spy of [...spies, ...timers]) expect(spy).not.toHaveBeenCalled()
  expect(html).toContain('awaiting-approval: 1 of 2')
  expect(server.requests).toEqual([])
})

test('S4.89 on a server a chat with options of its own is one client, however often it is read', async () => {
  const connection = scriptedConnection([])
  const seen = new Set<ChatClient>()
  const other = ref(0)
  const App = component(() => {
    const chat = useChat({ connection, initialMessages })
    seen.add(chat.client.value)
    other.value++
    seen.add(chat.client.value)
    return () => {
      seen.add(chat.client.value)
      return h('p', chat.messages.value.length)
    }
  })
  const html = await renderToString(createSSRApp(App))
  expect([seen.size, html]).toEqual([1, `<p>${initialMessages.length}</p>`])
})

test('S4.89 what happened before the page is hydrated comes after it: each composable begins with the beginning', async () => {
  const make = () => {
    const server = scriptedConnection([[resolve(), text('Already here.')]])
    return new ChatClient({ connection: server, initialMessages, threadId: 't', notify: 'sync' })
  }
  const container = served(await renderToString(createSSRApp(appOn(make()))))
  const [output, item] = [container.querySelector('output'), container.querySelector('li')]
  const client = make()
  await after(() => client.addToolApprovalResponse({ id: 'a-c', approved: true }))
  const app = createSSRApp(appOn(client))
  app.mount(container)
  await after()
  expect([container.querySelector('output'), container.querySelector('li')]).toEqual([output, item])
  expect(container.querySelector('output')?.textContent).toBe('ready: 0 of 3')
  expect(container.textContent).toContain('Already here.')
  app.unmount()
})

test('S4.89 an asynchronous setup is hydrated as well', async () => {
  const client = () => new ChatClient({ connection: scriptedConnection([]), initialMessages, threadId: 't' })
  const appWith = (shared: ChatClient) => {
    const Slow = defineComponent({
      async setup() {
        const { status } = useChat({ client: shared })
        await Promise.resolve()
        return () => h('output', status.value)
      },
    })
    return { render: () => h(Suspense, () => h(Slow)) }
  }
  const container = served(await renderToString(createSSRApp(appWith(client()))))
  expect(container.textContent).toBe('awaiting-approval')
  const shared = client()
  shared.clear()
  const app = createSSRApp(appWith(shared))
  app.mount(container)
  await after()
  expect(container.textContent).toBe('ready')
  app.unmount()
})

test('a page that no server rendered shows the present from its first rendering on', () => {
  const client = new ChatClient({ connection: scriptedConnection([]), initialMessages })
  client.clear()
  const shown: string[] = []
  const App = component(() => {
    const { status, messages } = useChat({ client })
    return () => {
      shown.push(`${status.value} ${messages.value.length}`)
      return null
    }
  })
  mount(App)
  expect(shown).toEqual(['ready 0'])
})
