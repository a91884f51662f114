/** @jsxImportSource solid-js */
import { ChatClient } from '@countersign/client'
import {
  ChatProvider,
  type UseChat,
  useChat,
  useChatClient,
  useChatSelector,
  useMessage,
} from '@countersign/solid'
import { byHand, finish, passMacrotasks, scriptedConnection, text } from '@countersign/testing'
import { createEffect, createResource, createRoot, createSignal, type JSX, Show, Suspense } from 'solid-js'
import { createStore } from 'solid-js/store'
import { render } from 'solid-js/web'
import { expect, onTestFinished, test, vi } from 'vitest'

const notify = 'sync'

/** Runs `set` as the body of a component would run, until the test is over or it is ended. */
function inRoot<T extends object>(set: () => T): T & { end: () => void } {
  return createRoot((end) => {
    onTestFinished(end)
    return Object.assign(Object.create(null), set(), { end })
  })
}

test('S4.87 the chat and its actions are always the same, and act on the chat that is shown', async () => {
  const server = scriptedConnection([], { otherwise: [text('Yes.')] })
  const [threadId, setThreadId] = createSignal('a')
  const { chat } = inRoot(() => ({
    chat: useChat(() => ({ connection: server, notify, threadId: threadId() })),
  }))
  const { sendMessage, addToolApprovalResponse } = chat
  await sendMessage('in a')
  setThreadId('b')
  expect([chat.threadId, chat.messages, chat.client.threadId]).toEqual(['b', [], 'b'])
  await sendMessage('in b')
  expect(chat.sendMessage).toBe(sendMessage)
  expect(chat.addToolApprovalResponse).toBe(addToolApprovalResponse)
  expect(server.requests.map(({ threadId }) => threadId)).toEqual(['a', 'b'])
})

test('options may be a store or an object with getters', async () => {
  const server = scriptedConnection([], { otherwise: [text('Yes.')] })
  const [options, setOptions] = createStore({ threadId: 'a', tone: 'dry' })
  const { chat } = inRoot(() => ({
    chat: useChat({
      connection: server,
      get threadId() {
        return options.threadId
      },
      get forwardedProps() {
        return options.tone
      },
    }),
  }))
  await chat.sendMessage('one')
  setOptions('tone', 'warm')
  await chat.sendMessage('two')
  setOptions('threadId', 'b')
  await chat.sendMessage('three')
  expect(server.requests.map(({ threadId, forwardedProps }) => [threadId, forwardedProps])).toEqual([
    ['a', 'dry'],
    ['a', 'warm'],
    ['b', 'warm'],
  ])
})

test('the client stays the same while only other options change', () => {
  const connection = scriptedConnection([])
  const [tone, setTone] = createSignal('dry')
  const clients = new Set<ChatClient>()
  inRoot(() => {
    const client = useChatClient(() => ({ connection, forwardedProps: tone() }))
    createEffect(() => clients.add(client()))
    return {}
  })
  setTone('warm')
  setTone('dry')
  expect(clients.size).toBe(1)
})

test('an effect that sends when an option changes already sends with the new one', async () => {
  const [one, two] = [scriptedConnection([byHand]), scriptedConnection([byHand])]
  const [next, setNext] = createSignal(false)
  inRoot(() => {
    const chat = useChat(() => ({ connection: next() ? two : one, notify }))
    createEffect(() => {
      if (next()) void chat.sendMessage('now')
    })
    return {}
  })
  setNext(true)
  await passMacrotasks()
  expect([one.requests.length, two.requests.length]).toEqual([0, 1])
})

test('an action in an effect makes the effect depend on nothing that the action reads', async () => {
  const [tone, setTone] = createSignal('dry')
  const server = scriptedConnection([], { otherwise: [finish()] })
  const ran = vi.fn()
  inRoot(() => {
    const chat = useChat({
      connection: {
        connect(...given) {
          tone()
          return server.connect(...given)
        },
      },
      generateId: () => `${tone()} ${Math.random()}`,
    })
    createEffect(() => {
      ran()
      void chat.sendMessage('once')
    })
    return {}
  })
  await passMacrotasks(2)
  setTone('warm')
  await passMacrotasks(2)
  expect([ran.mock.calls.length, server.requests.length]).toEqual([1, 1])
})

test('useMessage follows its id, and useChatSelector the signals its selector reads', () => {
  const client = new ChatClient({
    connection: scriptedConnection([]),
    initialMessages: ['a', 'b'].map((id) => ({ id, role: 'user', parts: [{ type: 'text', text: id }] })),
  })
  const [at, setAt] = createSignal(0)
  const { message, id } = inRoot(() => ({
    message: useMessage(() => (at() === 0 ? 'a' : 'b'), { client }),
    id: useChatSelector(({ messages }) => messages[at()]?.id, undefined, { client }),
  }))
  expect([message()?.id, id()]).toEqual(['a', 'a'])
  setAt(1)
  expect([message()?.id, id()]).toEqual(['b', 'b'])
})

test('useChatSelector with an equality keeps its value while it is equal', async () => {
  const server = scriptedConnection([byHand])
  const client = new ChatClient({ connection: server, notify })
  const { ids } = inRoot(() => ({
    ids: useChatSelector(
      ({ messages }) => messages.map(({ id }) => id),
      (a, b) => a.join() === b.join(),
      { client },
    ),
  }))
  void client.sendMessage('hello')
  const run = await server.request(1)
  run.emit(text('Hi.'))
  await passMacrotasks()
  const before = ids()
  run.emit(finish())
  await passMacrotasks()
  expect([client.getSnapshot().status, ids().length]).toEqual(['ready', 2])
  expect(ids()).toBe(before)
})

test('what happens between the component and its effects is not missed', async () => {
  const server = scriptedConnection([byHand])
  const client = new ChatClient({ connection: server, notify })
  const { chat, count } = inRoot(() => {
    const chat = useChat({ client })
    const count = useChatSelector(({ messages }) => messages.length, undefined, { client })
    void chat.sendMessage('already')
    return { chat, count }
  })
  expect([chat.messages.length, chat.isLoading, count()]).toEqual([1, true, 1])
  await passMacrotasks()
})

test('the end of the owner detaches and stops nothing', async () => {
  const server = scriptedConnection([byHand])
  const client = new ChatClient({ connection: server, notify })
  const detached = vi.fn()
  const { attach } = client
  vi.spyOn(client, 'attach').mockImplementation(() => {
    const detach = attach()
    return () => {
      detached()
      detach()
    }
  })
  const { chat, end } = inRoot(() => ({ chat: useChat({ client }) }))
  const sent = chat.sendMessage('hello')
  const run = await server.request(1)
  end()
  expect([detached.mock.calls.length, server.openStreams]).toEqual([1, 1])
  run.emit(text('Late.'), finish())
  expect([(await sent).status, client.getSnapshot().messages.length]).toEqual(['sent', 2])
})

test('an inner provider stands over an outer one, and its thread under the page’s', () => {
  const connection = scriptedConnection([])
  const got: UseChat[] = []
  const Page = (props: { threadId?: string }): JSX.Element => {
    got.push(useChat(() => (props.threadId === undefined ? {} : { threadId: props.threadId })))
    return null
  }
  inRoot(() => ({
    page: (
      <ChatProvider options={{ connection, threadId: 'outer' }}>
        <Page />
        <ChatProvider options={{ connection, threadId: 'inner' }}>
          <Page />
          <Page threadId="own" />
          <Page threadId="own" />
        </ChatProvider>
      </ChatProvider>
    ),
  }))
  expect(got.map(({ threadId }) => threadId)).toEqual(['outer', 'inner', 'own', 'own'])
  expect(got[2]?.client).toBe(got[3]?.client)
})

test('without a provider, a client or a connection the error names the way out', () => {
  for (const options of [undefined, {}, { threadId: 'a' }, () => ({})]) {
    expect(() => inRoot(() => ({ chat: useChat(options) }))).toThrow(/connection.*client.*provider/)
  }
})

test('S4.90 options of a page that is gone are those of the provider again', async () => {
  const connection = scriptedConnection([], { otherwise: [text('Yes.')] })
  const finished: string[] = []
  const [isOpen, setOpen] = createSignal(true)
  let chat: UseChat | undefined
  const Dialog = () => {
    useChat({ onFinish: () => finished.push('dialog'), forwardedProps: { tone: 'warm' } })
    return null
  }
  const Main = () => {
    chat = useChat()
    return (
      <Show when={isOpen()}>
        <Dialog />
      </Show>
    )
  }
  const options = {
    connection,
    notify,
    forwardedProps: { tone: 'dry' },
    onFinish: () => finished.push('all'),
  } as const
  const end = render(
    () => (
      <ChatProvider options={options}>
        <Main />
      </ChatProvider>
    ),
    document.createElement('div'),
  )
  onTestFinished(end)
  await chat?.sendMessage('hello')
  setOpen(false)
  await chat?.sendMessage('hello')
  expect(connection.requests.map(({ forwardedProps }) => forwardedProps)).toEqual([
    { tone: 'warm' },
    { tone: 'dry' },
  ])
  expect(finished).toEqual(['dialog', 'all'])
})

test('a shared store is current where it is shown, also while the page that created it suspends', async () => {
  const client = new ChatClient({ connection: scriptedConnection([], { otherwise: [text('Yes.')] }), notify })
  const attach = vi.spyOn(client, 'attach')
  const seen: number[] = []
  let chat: UseChat | undefined
  // As a shared store of the page: it has the context of the component that is first to use it.
  const useStore = () => {
    chat ??= createRoot((end) => {
      onTestFinished(end)
      return useChat({ client })
    })
    return chat
  }
  const Waiting = () => {
    const store = useStore()
    const [never] = createResource(async () => {
      await store.sendMessage('hello')
      seen.push(store.messages.length)
      return new Promise<string>(() => {})
    })
    return <p>{never()}</p>
  }
  const container = document.createElement('div')
  const page = () => (
    <>
      <Suspense>
        <Waiting />
      </Suspense>
      <b>{useStore().messages.length}</b>
    </>
  )
  onTestFinished(render(page, container))
  await passMacrotasks(3)
  expect([container.textContent, seen, attach.mock.calls.length]).toEqual(['2', [2], 1])
})
