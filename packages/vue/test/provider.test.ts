import { ChatClient, type ChatClientOptions } from '@countersign/client'
import { scriptedConnection, text } from '@countersign/testing'
import { ChatProvider, provideChat, type UseChat, type UseChatOptions, useChat } from '@countersign/vue'
import { expect, test } from 'vitest'
import { type Component, h, ref, shallowRef } from 'vue'
import { after, component, expectNoWarnings, mount } from './stage.js'

expectNoWarnings()

const notify = 'sync'
const server = () => scriptedConnection([], { otherwise: [text('Yes.')] })

/** A page below a provider. */
function child(options?: () => UseChatOptions): { readonly Child: Component; readonly chats: UseChat[] } {
  const chats: UseChat[] = []
  const Child = component(() => {
    chats.push(useChat(options))
    return () => null
  })
  return { Child, chats }
}

test('provideChat gives the chat to what is below, and its client to the component itself', async () => {
  const connection = server()
  const { Child, chats } = child()
  const App = component(() => {
    const client = provideChat({ connection, notify })
    const { messages } = useChat(() => ({ client: client.value }))
    return () => [h('p', String(messages.value.length)), h(Child)]
  })
  const { container } = mount(App)
  await after(() => chats[0]?.sendMessage('hello'))
  expect(container.textContent).toBe('2')
})

test('provideChat shares a client', () => {
  const client = new ChatClient({ connection: server() })
  const { Child, chats } = child()
  const App = component(() => {
    provideChat({ client })
    return () => h(Child)
  })
  mount(App)
  expect(chats[0]?.client.value).toBe(client)
})

test('another client or another thread of the provider is another chat, in components that stay', async () => {
  const connection = server()
  const shared = new ChatClient({ connection, notify, threadId: 'shared' })
  const { Child, chats } = child()
  const props = shallowRef<{ client: ChatClient } | { options: ChatClientOptions }>({
    options: { connection, notify, threadId: 'a' },
  })
  mount({ render: () => h(ChatProvider, props.value, () => h(Child)) })
  const [chat] = chats
  await after(() => chat?.sendMessage('in a'))
  props.value = { client: shared }
  await after()
  expect([chat?.client.value === shared, chat?.messages.value]).toEqual([true, []])
  props.value = { options: { connection, notify, threadId: 'a' } }
  await after()
  expect([chats.length, chat?.threadId.value, chat?.messages.value.length]).toEqual([1, 'a', 2])
})

test('a page of another thread gets the provider’s client of that thread, with the provider’s options as they change', async () => {
  const connection = server()
  const tone = ref('dry')
  const [one, two] = [child(() => ({ threadId: 'b' })), child(() => ({ threadId: 'b' }))]
  mount({
    render: () =>
      h(ChatProvider, { options: { connection, notify, forwardedProps: tone.value } }, () => [
        h(one.Child),
        h(two.Child),
      ]),
  })
  expect(one.chats[0]?.client.value).toBe(two.chats[0]?.client.value)
  tone.value = 'warm'
  await after()
  await after(() => one.chats[0]?.sendMessage('hello'))
  expect(connection.requests.map(({ threadId, forwardedProps }) => [threadId, forwardedProps])).toEqual([
    ['b', 'warm'],
  ])
})

test('the nearest provider counts', () => {
  const [outer, inner] = [server(), server()].map((connection) => new ChatClient({ connection }))
  if (!outer || !inner) throw new Error('two clients')
  const { Child, chats } = child()
  mount({
    render: () =>
      h(ChatProvider, { client: outer }, () => h(ChatProvider, { client: inner }, () => h(Child))),
  })
  expect(chats[0]?.client.value).toBe(inner)
})

test('options of a page that is gone are those of the provider again', async () => {
  const connection = server()
  const finished: string[] = []
  const isOpen = ref(true)
  const main = child()
  const dialog = child(() => ({ onFinish: () => finished.push('dialog'), forwardedProps: { tone: 'warm' } }))
  mount(
    component(() => {
      provideChat({
        connection,
        notify,
        forwardedProps: { tone: 'dry' },
        onFinish: () => finished.push('all'),
      })
      return () => [h(main.Child), isOpen.value ? h(dialog.Child) : null]
    }),
  )
  await after(() => main.chats[0]?.sendMessage('hello'))
  isOpen.value = false
  await after()
  await after(() => main.chats[0]?.sendMessage('hello'))
  expect(connection.requests.map(({ forwardedProps }) => forwardedProps)).toEqual([
    { tone: 'warm' },
    { tone: 'dry' },
  ])
  expect(finished).toEqual(['dialog', 'all'])
})
