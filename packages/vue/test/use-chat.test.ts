import { ChatClient, type ChatClientOptions, isCountersignError } from '@countersign/client'
import {
  byHand,
  finish,
  gated,
  hold,
  resolve,
  scriptedConnection,
  text,
  textDelta,
  textEnd,
  textStart,
} from '@countersign/testing'
import { provideChat, useChat, useChatClient } from '@countersign/vue'
import { expect, test, vi } from 'vitest'
import {
  computed,
  defineComponent,
  effectScope,
  h,
  isReactive,
  KeepAlive,
  onMounted,
  onUpdated,
  reactive,
  ref,
  shallowRef,
  watch,
  watchEffect,
} from 'vue'
import { after, component, expectNoWarnings, mount, withSetup } from './stage.js'

expectNoWarnings()

const chatOn = (options: ChatClientOptions) => new ChatClient({ notify: 'sync', ...options })

test('S4.84 a setup takes the fields out as refs; approve and deny flows update them', async () => {
  const server = scriptedConnection([
    [gated(1), gated(2)],
    [resolve(), text('Done.')],
  ])
  const client = chatOn({ connection: server })
  const { result } = withSetup(() => {
    const { messages, status, isLoading, error, pendingApprovals, addToolApprovalResponse } = useChat({
      client,
    })
    return { messages, status, isLoading, error, pendingApprovals, addToolApprovalResponse }
  })
  const { messages, status, isLoading, error, pendingApprovals, addToolApprovalResponse } = result
  expect([messages.value, status.value, isLoading.value, error.value]).toEqual([
    [],
    'ready',
    false,
    undefined,
  ])

  await after(() => client.sendMessage('tidy up'))
  expect([status.value, isLoading.value, pendingApprovals.value.length]).toEqual([
    'awaiting-approval',
    false,
    2,
  ])

  await after(() => addToolApprovalResponse({ id: 'a1', approved: true }))
  expect(pendingApprovals.value.map(({ approval }) => approval?.id)).toEqual(['a2'])
  await after(() => addToolApprovalResponse({ id: 'a2', approved: false, reason: 'not now' }))
  const calls = messages.value.flatMap(({ parts }) => parts.filter((part) => part.type === 'tool-call'))
  expect([status.value, calls.map(({ state }) => state)]).toEqual(['ready', ['complete', 'denied']])
})

test('S4.84 the refs are what the client holds, neither copied nor made reactive, and cannot be written', async () => {
  const server = scriptedConnection([[text('Hello.')]])
  const client = chatOn({ connection: server })
  const { result } = withSetup(() => useChat({ client }))
  await after(() => client.sendMessage('hello'))
  expect(result.messages.value).toBe(client.getSnapshot().messages)
  expect(result.messages.value.some((message) => isReactive(message))).toBe(false)
  expect(reactive(result).messages).toBe(client.getSnapshot().messages)
  Reflect.set(result.status, 'value', 'error')
  expect(result.status.value).toBe('ready')
  expect(String(vi.mocked(console.warn).mock.calls[0])).toMatch(/readonly/)
  vi.mocked(console.warn).mockClear()
})

test('each ref changes only when its field does, also for a watcher that runs at once', async () => {
  const server = scriptedConnection([byHand])
  const client = chatOn({ connection: server, threadId: 't' })
  const changes = new Map<string, number>()
  const { result } = withSetup(() => {
    const { messages, status, isLoading, pendingApprovals, queue, threadId } = useChat({ client })
    const fields = { messages, status, isLoading, pendingApprovals, queue, threadId }
    for (const [name, field] of Object.entries(fields)) {
      watch(field, () => changes.set(name, (changes.get(name) ?? 0) + 1), { flush: 'sync' })
    }
    return fields
  })
  await after(() => client.sendMessage('hello'))
  const run = await server.request(1)
  await after(() => run.emit(textStart(), textDelta('0')))
  const before = new Map(changes)
  await after(() => run.emit(...Array.from({ length: 20 }, () => textDelta('x'))))
  expect(changes).toEqual(before.set('messages', Number(before.get('messages')) + 20))
  await after(() => run.emit(textEnd(), finish()))
  expect([changes.get('status'), changes.get('isLoading'), changes.get('threadId')]).toEqual([
    3,
    2,
    undefined,
  ])
  expect(result.status.value).toBe('ready')
})

test('S4.87 the actions that a setup took out stay the same and act on the chat of the moment', async () => {
  const server = scriptedConnection([], { otherwise: [text('Yes.')] })
  const threadId = ref('a')
  const { result: chat } = withSetup(() =>
    useChat(() => ({ connection: server, notify: 'sync', threadId: threadId.value })),
  )
  const { sendMessage, addToolApprovalResponse, messages } = chat
  await after(() => sendMessage('in a'))
  threadId.value = 'b'
  await after(() => sendMessage('in b'))
  expect(server.requests.map((request) => request.threadId)).toEqual(['a', 'b'])
  expect([messages.value.length, chat.threadId.value]).toEqual([2, 'b'])
  expect([chat.sendMessage, chat.addToolApprovalResponse]).toEqual([sendMessage, addToolApprovalResponse])
})

test('options that change count at once, without a flush between the change and the act', async () => {
  const server = scriptedConnection([], { otherwise: [text('Yes.')] })
  const [tone, threadId] = [ref('dry'), ref('a')]
  const { result: chat } = withSetup(() =>
    useChat(() => ({ connection: server, threadId: threadId.value, forwardedProps: tone.value })),
  )
  tone.value = 'warm'
  void chat.sendMessage('one')
  threadId.value = 'b'
  void chat.sendMessage('two')
  await after()
  expect(server.requests.map((request) => [request.threadId, request.forwardedProps])).toEqual([
    ['a', 'warm'],
    ['b', 'warm'],
  ])
})

test('options that change one after the other, as props do, are taken together', async () => {
  const server = scriptedConnection([])
  const threads: string[] = []
  const Chat = defineComponent({
    props: { threadId: { type: String, required: true }, greeting: { type: String, required: true } },
    setup(props) {
      const chat = useChat(() => ({
        connection: server,
        threadId: props.threadId,
        initialMessages: [{ id: 'g', role: 'assistant', parts: [{ type: 'text', text: props.greeting }] }],
      }))
      return () => {
        const [first] = chat.messages.value
        const [part] = first?.parts ?? []
        return h('p', part?.type === 'text' ? `${chat.threadId.value}: ${part.text}` : '')
      }
    },
  })
  const now = shallowRef({ threadId: 'a', greeting: 'of a' })
  const { container } = mount({ render: () => h(Chat, now.value) })
  threads.push(container.textContent ?? '')
  now.value = { threadId: 'b', greeting: 'of b' }
  await after()
  threads.push(container.textContent ?? '')
  expect(threads).toEqual(['a: of a', 'b: of b'])
})

test('options may be an object, a ref, a reactive object or a getter, and are followed in each', async () => {
  const server = scriptedConnection([], { otherwise: [text('Yes.')] })
  const plain = { connection: server, forwardedProps: 'plain' }
  const asRef = ref({ connection: server, forwardedProps: 'old' })
  const asReactive = reactive({ connection: server, forwardedProps: 'old' })
  const chats = [plain, asRef, asReactive, () => ({ ...asReactive })].map(
    (options) => withSetup(() => useChat(options)).result,
  )
  asRef.value.forwardedProps = 'ref'
  asReactive.forwardedProps = 'reactive'
  for (const chat of chats) await after(() => chat.sendMessage('hello'))
  expect(server.requests.map(({ forwardedProps }) => forwardedProps)).toEqual([
    'plain',
    'ref',
    'reactive',
    'reactive',
  ])
})

test('a client that a reactive object turned into a proxy is still that client', async () => {
  const server = scriptedConnection([[text('Yes.')]])
  const client = chatOn({ connection: server })
  const held = ref({ client })
  const { result: chat } = withSetup(() => useChat(() => ({ client: held.value.client as ChatClient })))
  expect(chat.client.value).toBe(client)
  await after(() => chat.sendMessage('hello'))
  expect(chat.messages.value).toHaveLength(2)
})

test('an option that changes while nobody reads the chat is followed with the next flush', async () => {
  const server = scriptedConnection([[hold(), text('Yes.')]])
  const finished: string[] = []
  const name = ref('first')
  const { result: client } = withSetup(() =>
    useChatClient(() => {
      const called = name.value
      return { connection: server, onFinish: () => finished.push(called) }
    }),
  )
  const { sendMessage } = client.value
  await after(() => sendMessage('hello'))
  name.value = 'second'
  await after()
  await after(() => server.release())
  expect(finished).toEqual(['second'])
})

test('another threadId is another client, and the run of the old one goes on', async () => {
  const server = scriptedConnection([[hold(), text('Still here.')]])
  const threadId = ref('a')
  const { result: chat } = withSetup(() =>
    useChat(() => ({ connection: server, notify: 'sync', threadId: threadId.value })),
  )
  const old = chat.client.value
  await after(() => chat.sendMessage('hello'))
  threadId.value = 'b'
  await after()
  expect([chat.client.value === old, chat.threadId.value, chat.messages.value]).toEqual([false, 'b', []])
  expect(server.openStreams).toBe(1)
  await after(() => server.release())
  expect(old.getSnapshot().messages).toHaveLength(2)
  expect(chat.messages.value).toEqual([])
})

test('a component that is kept alive goes on listening, and is let go with what keeps it', async () => {
  const server = scriptedConnection([byHand])
  const client = chatOn({ connection: server })
  const detach = vi.fn()
  vi.spyOn(client, 'attach').mockImplementation(() => detach)
  const Chat = component(() => {
    const { messages } = useChat({ client })
    return () => h('p', String(messages.value.length))
  })
  const isShown = ref(true)
  const page = mount({ render: () => h(KeepAlive, () => (isShown.value ? h(Chat) : null)) })
  isShown.value = false
  await after(() => client.sendMessage('meanwhile'))
  expect([page.container.textContent, detach.mock.calls.length]).toEqual(['', 0])
  isShown.value = true
  await after()
  expect(page.container.textContent).toBe('1')
  page.unmount()
  await after()
  expect(detach).toHaveBeenCalledOnce()
  expect(server.openStreams).toBe(1)
})

test('only the streaming message’s component updates, counted by onUpdated', async () => {
  const server = scriptedConnection([byHand])
  const client = chatOn({ connection: server })
  const updates = { status: 0, messages: 0 }
  const watching = (name: keyof typeof updates) =>
    component(() => {
      const chat = useChat({ client })
      onUpdated(() => void updates[name]++)
      return () => h('p', JSON.stringify(chat[name].value))
    })
  const [Status, Messages] = [watching('status'), watching('messages')]
  mount({ render: () => [h(Status), h(Messages)] })
  await after(() => client.sendMessage('hello'))
  const run = await server.request(1)
  await after(() => run.emit(textStart(), textDelta('0')))
  const before = { ...updates }
  for (let at = 0; at < 10; at++) await after(() => run.emit(textDelta('x')))
  expect(updates).toEqual({ status: before.status, messages: before.messages + 10 })
})

test('who sends when it is mounted is heard by the page around it, and the request is one', async () => {
  const server = scriptedConnection([[text('Yes.')]])
  const Child = component(() => {
    const client = useChatClient({ client: shared })
    onMounted(() => client.value.sendMessage('hello'))
    return () => null
  })
  const shared = chatOn({ connection: server })
  const Page = component(() => {
    const { messages } = useChat({ client: shared })
    return () => [h('p', String(messages.value.length)), h(Child)]
  })
  const { container } = mount(Page)
  await after()
  expect([container.textContent, server.requests.length]).toEqual(['2', 1])
})

test('a setup attaches and listens to nothing before it is mounted', async () => {
  const client = chatOn({ connection: scriptedConnection([]) })
  const [attach, subscribe] = [vi.spyOn(client, 'attach'), vi.spyOn(client, 'subscribe')]
  const counts: number[] = []
  withSetup(() => {
    useChat({ client })
    counts.push(attach.mock.calls.length + subscribe.mock.calls.length)
    return counts
  })
  expect(counts).toEqual([0])
  await after()
  expect(attach).toHaveBeenCalledOnce()
  expect(subscribe).toHaveBeenCalled()
})

test('without a provider, a client or a connection the error names the way out', () => {
  for (const options of [undefined, {}, { threadId: 'a' }, { client: undefined }]) {
    let caught: unknown
    withSetup(() => {
      try {
        useChat(options)
      } catch (error) {
        caught = error
      }
      return true
    })
    expect(isCountersignError(caught) && caught.code).toBe('invalid-option')
    expect(String(caught)).toMatch(/connection.*client.*provider/)
  }
})

test('a ref given as the client, as provideChat returns one, is an error that names the ref', () => {
  withSetup(() => {
    const client = provideChat({ connection: scriptedConnection([]) })
    const refusal = expect.objectContaining({
      code: 'invalid-option',
      message: expect.stringContaining('`client` (not a ref)'),
    })
    // @ts-expect-error this is for callers without types
    expect(() => useChat({ client })).toThrow(refusal)
    // @ts-expect-error
    expect(() => provideChat({ client })).toThrow(refusal)
    return true
  })
})

test('a computed and an effect over the refs follow the chat', async () => {
  const server = scriptedConnection([[text('Yes.')]])
  const client = chatOn({ connection: server })
  const seen: number[] = []
  const { result: last } = withSetup(() => {
    const { messages } = useChat({ client })
    watchEffect(() => void seen.push(messages.value.length))
    return computed(() => messages.value.at(-1)?.role)
  })
  await after(() => client.sendMessage('hello'))
  expect([last.value, seen.at(0), seen.at(-1)]).toEqual(['assistant', 0, 2])
})

test('an effect that acts does not act again when the thread is another', async () => {
  const server = scriptedConnection([], { otherwise: [text('Yes.')] })
  const threadId = ref('a')
  withSetup(() => {
    const { sendMessage } = useChat(() => ({
      connection: server,
      notify: 'sync',
      threadId: threadId.value,
    }))
    watchEffect(() => void sendMessage('hello'))
    return true
  })
  await after()
  threadId.value = 'b'
  await after()
  expect(server.requests).toHaveLength(1)
})

test('an effect outside of components that acts and reads on its own does not act again', async () => {
  const server = scriptedConnection([], { otherwise: [text('Yes.')] })
  const scope = effectScope()
  scope.run(() => {
    const { sendMessage, status } = useChat({ connection: server, notify: 'sync' })
    watch(status, () => {})
    watchEffect(() => void sendMessage('hello'))
  })
  await after()
  expect(server.requests).toHaveLength(1)
  scope.stop()
})
