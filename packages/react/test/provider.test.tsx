import { ChatClient } from '@countersign/client'
import { ChatProvider, type UseChatOptions, useChat } from '@countersign/react'
import { render, renderHook } from '@testing-library/react'
import { StrictMode } from 'react'
import { expect, test, vi } from 'vitest'
import { handAgent, text } from './agent.js'
import { after, expectNoWarnings, lines, Page } from './page.js'

expectNoWarnings()

const notify = 'sync'

/** A child of a provider, with the client it got last. */
function child() {
  const got: { client?: ChatClient } = {}
  const Child = ({ options }: { options?: UseChatOptions }) => (
    <Page
      {...(options && { options })}
      onRender={({ client }) => {
        got.client = client
      }}
    />
  )
  return { got, Child }
}

test('useChat() reads the client of the provider', async () => {
  const { connection, requests } = handAgent()
  const client = new ChatClient({ connection, notify })
  render(
    <ChatProvider client={client}>
      <Page />
    </ChatProvider>,
  )
  await after(() => client.sendMessage('hello'))
  await after(() => requests[0]?.emit(...text('m', 'hi')))
  expect(lines()).toEqual(['hello', 'hi'])
})

test('a provider with options makes one client for all its children, also under StrictMode', async () => {
  const { connection, requests } = handAgent()
  const [one, two] = [child(), child()]
  render(
    <ChatProvider options={{ connection, notify }}>
      <one.Child />
      <two.Child />
    </ChatProvider>,
    { wrapper: StrictMode },
  )
  expect(one.got.client).toBe(two.got.client)
  await after(() => one.got.client?.sendMessage('hello'))
  expect(requests).toHaveLength(1)
  expect(lines()).toEqual(['hello', 'hello'])
})

test('useChat({ threadId }) under a provider takes the provider’s client of that thread', () => {
  const { connection } = handAgent()
  const [main, one, two, same] = [child(), child(), child(), child()]
  render(
    <ChatProvider options={{ connection, threadId: 'main' }}>
      <main.Child />
      <one.Child options={{ threadId: 'other' }} />
      <two.Child options={{ threadId: 'other' }} />
      <same.Child options={{ threadId: 'main' }} />
    </ChatProvider>,
  )
  expect(one.got.client).toBe(two.got.client)
  expect(one.got.client).not.toBe(main.got.client)
  expect(same.got.client).toBe(main.got.client)
  expect(one.got.client?.threadId).toBe('other')
})

test('a thread that is left and entered again is the same client, with what happened meanwhile', async () => {
  const { connection, requests } = handAgent()
  const { got, Child } = child()
  const page = (threadId: string) => (
    <ChatProvider options={{ connection, notify }}>
      <Child options={{ threadId }} />
    </ChatProvider>
  )
  const view = render(page('a'))
  await after(() => got.client?.sendMessage('in a'))
  view.rerender(page('b'))
  expect(lines()).toEqual([])
  await after(() => requests[0]?.emit(...text('m', 'meanwhile')))
  view.rerender(page('a'))
  expect(lines()).toEqual(['in a', 'meanwhile'])
})

test('useChat({ client }) under a provider shares that client, not the provider’s', () => {
  const { connection } = handAgent()
  const client = new ChatClient({ connection })
  const { got, Child } = child()
  render(
    <ChatProvider options={{ connection }}>
      <Child options={{ client }} />
    </ChatProvider>,
  )
  expect(got.client).toBe(client)
})

test('another client of the provider is another chat', async () => {
  const [one, two] = [handAgent(), handAgent()].map(
    ({ connection }) => new ChatClient({ connection, notify }),
  )
  if (!one || !two) throw new Error('two clients')
  const { got, Child } = child()
  const page = (client: ChatClient) => (
    <ChatProvider client={client}>
      <Child />
    </ChatProvider>
  )
  const view = render(page(one))
  await after(() => one.sendMessage('in one'))
  view.rerender(page(two))
  expect(got.client).toBe(two)
  expect(lines()).toEqual([])
  view.rerender(page(one))
  expect(lines()).toEqual(['in one'])
})

test('another threadId of the provider is another chat; coming back finds the first as it went on', async () => {
  const { connection, requests } = handAgent()
  const { got, Child } = child()
  const page = (threadId: string) => (
    <ChatProvider options={{ connection, notify, threadId }}>
      <Child />
    </ChatProvider>
  )
  const view = render(page('a'), { wrapper: StrictMode })
  await after(() => got.client?.sendMessage('in a'))
  view.rerender(page('b'))
  expect([got.client?.threadId, lines()]).toEqual(['b', []])
  await after(() => requests[0]?.emit(...text('m', 'meanwhile')))
  view.rerender(page('a'))
  expect(lines()).toEqual(['in a', 'meanwhile'])
  expect(requests).toHaveLength(1)
})

test('a provider that goes from a client to options, and back, follows', () => {
  const { connection } = handAgent()
  const onFinish = vi.fn()
  const client = new ChatClient({ connection, onFinish, threadId: 'given' })
  const { got, Child } = child()
  const page = (props: { client: ChatClient } | { options: ConstructorParameters<typeof ChatClient>[0] }) => (
    <ChatProvider {...props}>
      <Child />
    </ChatProvider>
  )
  const view = render(page({ client }))
  view.rerender(page({ options: { connection, threadId: 'own' } }))
  expect(got.client?.threadId).toBe('own')
  view.rerender(page({ client }))
  expect(got.client).toBe(client)
})

test('options of the provider that change are followed by all clients it made', async () => {
  const [old, now] = [handAgent(), handAgent()]
  const [main, other] = [child(), child()]
  const page = (connection: typeof old.connection) => (
    <ChatProvider options={{ connection, notify }}>
      <main.Child />
      <other.Child options={{ threadId: 'other' }} />
    </ChatProvider>
  )
  const view = render(page(old.connection))
  view.rerender(page(now.connection))
  await after(() => main.got.client?.sendMessage('in main'))
  await after(() => other.got.client?.sendMessage('in other'))
  expect([old.requests.length, now.requests.length]).toEqual([0, 2])
})

test('options of a page stand over those of the provider, and give way to them when they are gone', async () => {
  const { connection, requests } = handAgent()
  const { got, Child } = child()
  const page = (options: UseChatOptions, tone: string) => (
    <ChatProvider options={{ connection, notify, forwardedProps: { tone } }}>
      <Child options={options} />
    </ChatProvider>
  )
  const tones = () => requests.map(({ input }) => input.forwardedProps)
  const say = async () => {
    await after(() => got.client?.sendMessage('hello'))
    await after(() => requests.at(-1)?.finish())
  }
  const view = render(page({ forwardedProps: { tone: 'warm' } }, 'dry'))
  await say()
  view.rerender(page({ forwardedProps: { tone: 'warm' } }, 'drier'))
  await say()
  view.rerender(page({}, 'drier'))
  await say()
  expect(tones()).toEqual([{ tone: 'warm' }, { tone: 'warm' }, { tone: 'drier' }])
})

test('a page that gives one option does not take back what another page of the same chat gave', async () => {
  const { connection, requests } = handAgent()
  const [onFinish, onEvent] = [vi.fn(), vi.fn()]
  const [one, two] = [child(), child()]
  const page = (
    <ChatProvider options={{ connection, notify }}>
      <one.Child options={{ onFinish }} />
      <two.Child options={{ onEvent }} />
    </ChatProvider>
  )
  const view = render(page)
  view.rerender(page)
  await after(() => one.got.client?.sendMessage('hello'))
  await after(() => {
    requests[0]?.emit({ type: 'CUSTOM', name: 'weather', value: 'fine' })
    requests[0]?.finish()
  })
  expect([onFinish.mock.calls.length, onEvent.mock.calls.length]).toEqual([1, 1])
})

test('options of a page that is gone are those of the provider again, and another page keeps its own', async () => {
  const { connection, requests } = handAgent()
  const finished: string[] = []
  const [main, dialog] = [child(), child()]
  const [own, other] = [
    { onFinish: () => finished.push('main') },
    { onFinish: () => finished.push('dialog'), forwardedProps: { tone: 'warm' } },
  ]
  const page = (isOpen: boolean) => (
    <ChatProvider options={{ connection, notify, forwardedProps: { tone: 'dry' } }}>
      <main.Child options={own} />
      {isOpen && <dialog.Child options={other} />}
    </ChatProvider>
  )
  const view = render(page(false), { wrapper: StrictMode })
  for (const isOpen of [true, false]) {
    view.rerender(page(isOpen))
    await after(() => main.got.client?.sendMessage('hello'))
    await after(() => requests.at(-1)?.finish())
  }
  expect(requests.map(({ input }) => input.forwardedProps)).toEqual([{ tone: 'warm' }, { tone: 'dry' }])
  expect(finished).toEqual(['dialog', 'main'])
})

test('an option that is undefined is not given: the provider’s stands', async () => {
  const { connection, requests } = handAgent()
  const { got, Child } = child()
  render(
    <ChatProvider options={{ connection, notify, forwardedProps: { tone: 'dry' } }}>
      <Child options={{ threadId: 'other', forwardedProps: undefined }} />
    </ChatProvider>,
  )
  await after(() => got.client?.sendMessage('hello'))
  expect(requests[0]?.input.forwardedProps).toEqual({ tone: 'dry' })
})

test('under a provider with a client, another thread needs a connection, and the error says so', () => {
  const { connection } = handAgent()
  const client = new ChatClient({ connection })
  const wrapper = ({ children }: { children: React.ReactNode }) => (
    <ChatProvider client={client}>{children}</ChatProvider>
  )
  expect(() => renderHook(() => useChat({ threadId: 'other' }), { wrapper })).toThrow(/no connection/)
  vi.mocked(console.error).mockClear()
  const { result } = renderHook(() => useChat({ threadId: 'other', connection }), { wrapper })
  expect(result.current.threadId).toBe('other')
})
