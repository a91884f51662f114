import { ChatClient } from '@countersign/client'
import { type UseChat, useChat } from '@countersign/react'
import { render, renderHook } from '@testing-library/react'
import { StrictMode, Suspense, startTransition, use, useEffect, useState } from 'react'
import { expect, test, vi } from 'vitest'
import { gatedCall, handAgent, result, text, textDelta, textEnd, textStart } from './agent.js'
import { after, expectNoWarnings, lines, Page, press, shown } from './page.js'

expectNoWarnings()

const notify = 'sync'

function chatOnPage() {
  const agent = handAgent()
  const client = new ChatClient({ connection: agent.connection, notify })
  return { agent, client }
}

test('S4.82 messages, status and loading follow the run', async () => {
  const { agent, client } = chatOnPage()
  render(<Page options={{ client }} />)
  expect([shown('status'), shown('loading'), lines()]).toEqual(['ready', 'false', []])

  await after(() => client.sendMessage('hello'))
  expect([shown('status'), shown('loading'), lines()]).toEqual(['streaming', 'true', ['hello']])

  await after(() => agent.requests[0]?.emit(textStart('m'), textDelta('m', 'Good')))
  expect(lines()).toEqual(['hello', 'Good'])

  await after(() => {
    agent.requests[0]?.emit(textDelta('m', ' day'), textEnd('m'))
    agent.requests[0]?.finish()
  })
  expect([shown('status'), shown('loading'), lines()]).toEqual(['ready', 'false', ['hello', 'Good day']])
})

test('S4.82 an error of the run is shown, and gone with the next run', async () => {
  const { agent, client } = chatOnPage()
  render(<Page options={{ client }} />)
  await after(() => client.sendMessage('hello'))
  await after(() => agent.requests[0]?.fail('The model is away.'))
  expect(shown('status')).toBe('error')
  expect(shown('error')).toContain('The model is away.')

  await after(() => client.retry())
  await after(() => agent.requests[1]?.finish())
  expect([shown('status'), shown('error')]).toEqual(['ready', ''])
})

test('S4.82 approving updates the view, sends one continuation, and shows its result', async () => {
  const { agent, client } = chatOnPage()
  render(<Page options={{ client }} />)
  await after(() => client.sendMessage('tidy up'))
  await after(() => {
    agent.requests[0]?.emit(...gatedCall('c', 'old.log'))
    agent.requests[0]?.finish('c')
  })
  expect([shown('status'), lines()]).toEqual(['awaiting-approval', ['tidy up', '[c approval-requested]']])

  await press('approve c')
  expect([shown('status'), lines()]).toEqual(['streaming', ['tidy up', '[c approval-responded]']])
  expect(agent.requests).toHaveLength(2)
  expect(agent.requests[1]?.input.resume).toMatchObject([{ interruptId: 'a-c', payload: { approved: true } }])

  await after(() => {
    agent.requests[1]?.emit(result('c', '"gone"'), ...text('m2', 'Done.'))
    agent.requests[1]?.finish()
  })
  expect([shown('status'), lines()]).toEqual(['ready', ['tidy up', '[c complete]', 'Done.']])
})

test('S4.82 denying updates the view and sends the reason', async () => {
  const { agent, client } = chatOnPage()
  render(<Page options={{ client }} />)
  await after(() => client.sendMessage('tidy up'))
  await after(() => {
    agent.requests[0]?.emit(...gatedCall('c', 'old.log'))
    agent.requests[0]?.finish('c')
  })
  await press('deny c')
  expect(agent.requests[1]?.input.resume).toMatchObject([{ payload: { approved: false, reason: 'not now' } }])
  await after(() => {
    agent.requests[1]?.emit(result('c', '{"type":"execution-denied","reason":"not now"}'))
    agent.requests[1]?.finish()
  })
  expect([shown('status'), lines()]).toEqual(['ready', ['tidy up', '[c denied]']])
})

test('S4.87 the actions keep their identity over renders and runs', async () => {
  const { agent, client } = chatOnPage()
  const seen = new Set<unknown>()
  const seenSends = new Set<unknown>()
  const note = (chat: UseChat) => {
    seen.add(chat.addToolApprovalResponse)
    seenSends.add(chat.sendMessage)
  }
  const view = render(<Page options={{ client }} onRender={note} />)
  view.rerender(<Page options={{ client }} onRender={note} />)
  await after(() => client.sendMessage('hello'))
  await after(() => agent.requests[0]?.finish())
  expect([seen.size, seenSends.size]).toEqual([1, 1])
})

test('the chat is the same object until the snapshot changes', async () => {
  const { agent, client } = chatOnPage()
  const { result: hook, rerender } = renderHook(() => useChat({ client }))
  const first = hook.current
  rerender()
  expect(hook.current).toBe(first)
  await after(() => client.sendMessage('hello'))
  await after(() => agent.requests[0]?.finish())
  expect(hook.current).not.toBe(first)
})

test('S4.88 StrictMode: one client, one request, and approvals work', async () => {
  const { connection, requests } = handAgent()
  const clients = new Set<unknown>()
  function Sender() {
    const chat = useChat({ connection, notify })
    // What StrictMode calls twice must not be the sending itself: a page sends on an act of the person.
    return (
      <>
        <Page options={{ client: chat.client }} onRender={({ client }) => clients.add(client)} />
        <button type="button" onClick={() => void chat.sendMessage('tidy up')}>
          send
        </button>
      </>
    )
  }
  render(<Sender />, { wrapper: StrictMode })
  await press('send')
  expect([requests.length, clients.size]).toEqual([1, 1])
  await after(() => {
    requests[0]?.emit(...gatedCall('c', 'old.log'))
    requests[0]?.finish('c')
  })
  await press('approve c')
  expect(requests).toHaveLength(2)
  await after(() => {
    requests[1]?.emit(result('c', '"gone"'))
    requests[1]?.finish()
  })
  expect([shown('status'), lines()]).toEqual(['ready', ['tidy up', '[c complete]']])
  expect([requests.length, clients.size]).toEqual([2, 1])
})

test('S4.88 StrictMode: another threadId is one other client', () => {
  const { connection } = handAgent()
  const committed = new Set<ChatClient>()
  function Chat({ threadId }: { threadId: string }) {
    const { client } = useChat({ connection, threadId })
    useEffect(() => {
      committed.add(client)
    })
    return null
  }
  const view = render(<Chat threadId="a" />, { wrapper: StrictMode })
  for (const threadId of ['a', 'b', 'b', 'c', 'c']) view.rerender(<Chat threadId={threadId} />)
  expect([...committed].map((client) => client.threadId)).toEqual(['a', 'b', 'c'])
})

test('rendering sends nothing and starts no timer', () => {
  const { connection, requests } = handAgent()
  const timeout = vi.spyOn(globalThis, 'setTimeout')
  function Probe() {
    const before = timeout.mock.calls.length
    useChat({ connection })
    expect(timeout.mock.calls.length).toBe(before)
    return null
  }
  render(<Probe />, { wrapper: StrictMode })
  expect(requests).toHaveLength(0)
})

test('a callback that changes is followed', async () => {
  const { connection, requests } = handAgent()
  const [first, second] = [vi.fn(), vi.fn()]
  let chat: UseChat | undefined
  const page = (onFinish: () => void) => (
    <Page options={{ connection, notify, onFinish }} onRender={(now) => (chat = now)} />
  )
  const view = render(page(first))
  await after(() => chat?.sendMessage('hello'))
  view.rerender(page(second))
  await after(() => requests[0]?.finish())
  expect([first.mock.calls.length, second.mock.calls.length]).toEqual([0, 1])
})

test('an option that is given no longer is taken back', async () => {
  const { connection, requests } = handAgent()
  const onFinish = vi.fn()
  let chat: UseChat | undefined
  const page = (options: { onFinish?: () => void; forwardedProps?: unknown }) => (
    <Page options={{ connection, notify, ...options }} onRender={(now) => (chat = now)} />
  )
  const view = render(page({ onFinish, forwardedProps: { tone: 'dry' } }))
  view.rerender(page({}))
  await after(() => chat?.sendMessage('hello'))
  await after(() => requests[0]?.finish())
  expect(onFinish).not.toHaveBeenCalled()
  expect(requests[0]?.input.forwardedProps).toBeUndefined()
})

test('the next run takes a new connection; the open one keeps its own', async () => {
  const [one, two] = [handAgent(), handAgent()]
  let chat: UseChat | undefined
  const page = (connection: typeof one.connection) => (
    <Page options={{ connection, notify }} onRender={(now) => (chat = now)} />
  )
  const view = render(page(one.connection))
  await after(() => chat?.sendMessage('first'))
  view.rerender(page(two.connection))
  await after(() => {
    one.requests[0]?.emit(...text('m', 'from one'))
    one.requests[0]?.finish()
  })
  expect(lines()).toEqual(['first', 'from one'])
  await after(() => chat?.sendMessage('second'))
  expect([one.requests.length, two.requests.length]).toEqual([1, 1])
})

test('a child that sends in its effect already sends with the new options', async () => {
  const [one, two] = [handAgent(), handAgent()]
  function Child({ chat, go }: { chat: UseChat; go: boolean }) {
    useEffect(() => {
      if (go) void chat.sendMessage('now')
    }, [chat.sendMessage, go])
    return null
  }
  function Parent({ go }: { go: boolean }) {
    const chat = useChat({ connection: go ? two.connection : one.connection, notify })
    return <Child chat={chat} go={go} />
  }
  const view = render(<Parent go={false} />)
  view.rerender(<Parent go />)
  await after()
  expect([one.requests.length, two.requests.length]).toEqual([0, 1])
})

test('another threadId is another client, and the run of the old one goes on', async () => {
  const { connection, requests } = handAgent()
  let chat: UseChat | undefined
  const page = (threadId: string) => (
    <Page options={{ connection, notify, threadId }} onRender={(now) => (chat = now)} />
  )
  const view = render(page('a'))
  await after(() => chat?.sendMessage('hello'))
  const old = chat?.client
  view.rerender(page('b'))
  expect([chat?.threadId, shown('status'), lines()]).toEqual(['b', 'ready', []])
  expect(chat?.client).not.toBe(old)
  expect(requests[0]?.signal.aborted).toBe(false)

  await after(() => {
    requests[0]?.emit(...text('m', 'still here'))
    requests[0]?.finish()
  })
  expect(lines()).toEqual([])
  expect(old?.getSnapshot().messages).toHaveLength(2)
  await after(() => chat?.sendMessage('in b'))
  expect(requests[1]?.input.threadId).toBe('b')
})

test('two components share one client', async () => {
  const { agent, client } = chatOnPage()
  const Line = ({ name }: { name: string }) => {
    const { messages } = useChat({ client })
    return <output aria-label={name}>{messages.length}</output>
  }
  render(
    <>
      <Line name="one" />
      <Line name="two" />
    </>,
  )
  await after(() => client.sendMessage('hello'))
  await after(() => agent.requests[0]?.emit(...text('m', 'hi')))
  expect([shown('one'), shown('two')]).toEqual(['2', '2'])
  expect(agent.requests).toHaveLength(1)
})

test('another shared client is shown in place of the first', async () => {
  const [one, two] = [chatOnPage(), chatOnPage()]
  const view = render(<Page options={{ client: one.client }} />)
  await after(() => one.client.sendMessage('in one'))
  view.rerender(<Page options={{ client: two.client }} />)
  expect(lines()).toEqual([])
  await after(() => two.client.sendMessage('in two'))
  expect(lines()).toEqual(['in two'])
})

test('unmounted while streaming: the run goes on, nothing renders late, and a new mount shows the rest', async () => {
  const { agent, client } = chatOnPage()
  const renders = vi.fn()
  const view = render(<Page options={{ client }} onRender={renders} />)
  await after(() => client.sendMessage('hello'))
  await after(() => agent.requests[0]?.emit(textStart('m'), textDelta('m', 'half')))
  view.unmount()
  const atUnmount = renders.mock.calls.length

  await after(() => agent.requests[0]?.emit(textDelta('m', ' and half')))
  expect(renders.mock.calls.length).toBe(atUnmount)
  expect(agent.requests[0]?.signal.aborted).toBe(false)

  render(<Page options={{ client }} />)
  expect(lines()).toEqual(['hello', 'half and half'])
  await after(() => {
    agent.requests[0]?.emit(textEnd('m'))
    agent.requests[0]?.finish()
  })
  expect(shown('status')).toBe('ready')
  expect(agent.requests).toHaveLength(1)
})

test('an unmounted page leaves no timer, though a request with an expiry is open', async () => {
  const { agent, client } = chatOnPage()
  const timeout = vi.spyOn(globalThis, 'setTimeout')
  const cleared = vi.spyOn(globalThis, 'clearTimeout')
  const view = render(<Page options={{ client }} />)
  await after(() => client.sendMessage('tidy up'))
  await after(() => {
    const asked = gatedCall('c', 'old.log').map((event) => {
      if (event.type !== 'CUSTOM') return event
      const approval = { ...event.value.approval, expiresAt: new Date(Date.now() + 60_000).toISOString() }
      return { ...event, value: { ...event.value, approval } }
    })
    agent.requests[0]?.emit(...asked)
    agent.requests[0]?.finish('c')
  })
  const long = () => timeout.mock.results.filter((_, at) => Number(timeout.mock.calls[at]?.[1]) > 10_000)
  await vi.waitFor(() => expect(long()).not.toEqual([]))
  view.unmount()
  for (const { value } of long()) expect(cleared).toHaveBeenCalledWith(value)
  expect(client.getSnapshot().pendingApprovals).toHaveLength(1)
})

test('a render that comes to nothing attaches and sends nothing, and leaves the old chat in place', async () => {
  const { connection, requests } = handAgent()
  const never = new Promise<void>(() => {})
  const attached = vi.fn()
  const seen = new Set<ChatClient>()
  let switchTo: (threadId: string) => void = () => {}
  function Chat({ threadId }: { threadId: string }) {
    const { client } = useChat({ connection, notify, threadId })
    if (threadId === 'b') {
      if (!seen.has(client)) vi.spyOn(client, 'attach').mockImplementation(attached)
      seen.add(client)
      use(never)
    }
    return <output aria-label="thread">{client.threadId}</output>
  }
  function App() {
    const [threadId, setThreadId] = useState('a')
    switchTo = setThreadId
    return (
      <Suspense>
        <Chat threadId={threadId} />
      </Suspense>
    )
  }
  render(<App />)
  await after(() => startTransition(() => switchTo('b')))
  expect(seen.size).toBeGreaterThan(0)
  expect(shown('thread')).toBe('a')
  expect(attached).not.toHaveBeenCalled()
  expect(requests).toHaveLength(0)
})

test('without a provider, a client or a connection the error names the way out', () => {
  const { connection } = handAgent()
  const problem = (run: () => unknown) => {
    try {
      run()
    } catch (error) {
      return error
    }
    return undefined
  }
  for (const options of [undefined, {}, { threadId: 'a' }, { client: undefined }]) {
    const error = problem(() => renderHook(() => useChat(options)))
    expect(error).toMatchObject({ code: 'invalid-option', data: { option: 'connection' } })
    expect(String(error)).toMatch(/connection.*client.*provider/)
  }
  expect(problem(() => renderHook(() => useChat({ connection })))).toBeUndefined()
  vi.mocked(console.error).mockClear()
})
