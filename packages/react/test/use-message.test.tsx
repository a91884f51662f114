import { ChatClient, type UIMessage } from '@countersign/client'
import {
  ChatProvider,
  useChatSelector,
  useMessage,
  useMessageIds,
  usePendingApprovals,
} from '@countersign/react'
import { render, renderHook } from '@testing-library/react'
import { memo, useEffect, useState } from 'react'
import { expect, test, vi } from 'vitest'
import { gatedCall, handAgent, result, text, textDelta, textEnd, textStart } from './agent.js'
import { after, expectNoWarnings, words } from './page.js'

expectNoWarnings()

function chat(initialMessages: readonly UIMessage[] = []) {
  const { connection, requests } = handAgent()
  const client = new ChatClient({ connection, notify: 'sync', initialMessages })
  const wrapper = ({ children }: { children: React.ReactNode }) => (
    <ChatProvider client={client}>{children}</ChatProvider>
  )
  return { client, requests, wrapper }
}

const history = (count: number): UIMessage[] =>
  Array.from({ length: count }, (_, at) => ({
    id: `h${at}`,
    role: at % 2 === 0 ? 'user' : 'assistant',
    parts: [{ type: 'text', text: `message ${at}` }],
  }))

test('only the component of the streaming message renders: 200 messages of history, 500 deltas', async () => {
  const { client, requests, wrapper } = chat(history(200))
  const renders = new Map<string, number>()
  const Message = memo(({ id }: { id: string }) => {
    renders.set(id, (renders.get(id) ?? 0) + 1)
    const message = useMessage(id)
    return <p data-testid={id}>{message && words(message)}</p>
  })
  const lists = vi.fn()
  const List = () => {
    lists()
    return useMessageIds().map((id) => <Message key={id} id={id} />)
  }
  const view = render(<List />, { wrapper })
  await after(() => client.sendMessage('go'))
  await after(() => requests[0]?.emit(textStart('m'), textDelta('m', '0')))
  const before = new Map(renders)
  const listsBefore = lists.mock.calls.length

  for (let at = 1; at <= 500; at++) await after(() => requests[0]?.emit(textDelta('m', `.${at}`)))

  const others = [...renders].filter(([id]) => id !== 'm' && renders.get(id) !== before.get(id))
  expect(others).toEqual([])
  expect(lists.mock.calls.length).toBe(listsBefore)
  expect((renders.get('m') ?? 0) - (before.get('m') ?? 0)).toBe(500)
  expect(view.getByTestId('m').textContent?.endsWith('.499.500')).toBe(true)
})

test('an answer and a result render only the message they belong to', async () => {
  const { client, requests, wrapper } = chat(history(4))
  const renders: string[] = []
  const Message = memo(({ id }: { id: string }) => {
    renders.push(id)
    return <p>{useMessage(id)?.role}</p>
  })
  render(<List />, { wrapper })
  function List() {
    return useMessageIds().map((id) => <Message key={id} id={id} />)
  }
  await after(() => client.sendMessage('tidy up'))
  await after(() => {
    requests[0]?.emit(...gatedCall('c', 'old.log'))
    requests[0]?.finish('c')
  })
  renders.length = 0
  await after(() => client.addToolApprovalResponse({ id: 'a-c', approved: true }))
  await after(() => {
    requests[1]?.emit(result('c', '"gone"'))
    requests[1]?.finish()
  })
  expect(new Set(renders)).toEqual(new Set(['m-c']))
})

test('useMessage of an id that does not exist is undefined until it comes, and again when it is gone', async () => {
  const { client, requests, wrapper } = chat()
  const { result: hook } = renderHook(() => useMessage('m'), { wrapper })
  expect(hook.current).toBeUndefined()
  await after(() => client.sendMessage('hello'))
  await after(() => {
    requests[0]?.emit(...text('m', 'here'))
    requests[0]?.finish()
  })
  expect(hook.current?.parts).toMatchObject([{ type: 'text', text: 'here' }])
  await after(() => client.clear())
  expect(hook.current).toBeUndefined()
})

test('useMessage follows another id', () => {
  const { wrapper } = chat(history(2))
  const { result: hook, rerender } = renderHook(({ id }) => useMessage(id), {
    wrapper,
    initialProps: { id: 'h0' },
  })
  rerender({ id: 'h1' })
  expect(hook.current?.id).toBe('h1')
})

test('the hooks look into the client they are given, without a provider', () => {
  const { client } = chat(history(2))
  const { result: hook } = renderHook(() => ({
    ids: useMessageIds({ client }),
    first: useMessage('h0', { client }),
    pending: usePendingApprovals({ client }),
    status: useChatSelector(({ status }) => status, undefined, { client }),
  }))
  expect(hook.current).toMatchObject({ ids: ['h0', 'h1'], first: { id: 'h0' }, pending: [], status: 'ready' })
})

test('useMessageIds is the same array while no message comes or goes', async () => {
  const { client, requests, wrapper } = chat()
  const { result: hook } = renderHook(() => useMessageIds(), { wrapper })
  await after(() => client.sendMessage('hello'))
  await after(() => requests[0]?.emit(textStart('m'), textDelta('m', 'a')))
  const ids = hook.current
  expect(ids).toHaveLength(2)
  await after(() => requests[0]?.emit(textDelta('m', 'b'), textEnd('m')))
  await after(() => requests[0]?.finish())
  expect(hook.current).toBe(ids)
})

test('useChatSelector with an inline selector renders only when what it selects has changed', async () => {
  const { client, requests, wrapper } = chat()
  const renders = vi.fn()
  const { result: hook } = renderHook(
    () => {
      renders()
      return useChatSelector(({ messages }) => messages.length)
    },
    { wrapper },
  )
  await after(() => client.sendMessage('hello'))
  await after(() => requests[0]?.emit(textStart('m')))
  const before = renders.mock.calls.length
  for (let at = 0; at < 20; at++) await after(() => requests[0]?.emit(textDelta('m', 'x')))
  expect(renders.mock.calls.length).toBe(before)
  expect(hook.current).toBe(2)
})

test('useChatSelector with an inline selector that makes a new object each time does not loop', async () => {
  const { client, requests, wrapper } = chat()
  const renders = vi.fn()
  const { result: hook } = renderHook(
    () => {
      renders()
      return useChatSelector(({ messages }) => ({ count: messages.length }))
    },
    { wrapper },
  )
  await after(() => client.sendMessage('hello'))
  await after(() => requests[0]?.finish())
  expect(hook.current).toEqual({ count: 1 })
  expect(renders.mock.calls.length).toBeLessThan(10)
})

test('useChatSelector with an equality keeps the value and renders only when it is no longer equal', async () => {
  const { client, requests, wrapper } = chat()
  const renders = vi.fn()
  const { result: hook } = renderHook(
    () => {
      renders()
      return useChatSelector(
        ({ messages }) => messages.map(({ id }) => id),
        (a, b) => a.join() === b.join(),
      )
    },
    { wrapper },
  )
  await after(() => client.sendMessage('hello'))
  await after(() => requests[0]?.emit(textStart('m')))
  const [value, before] = [hook.current, renders.mock.calls.length]
  for (let at = 0; at < 20; at++) await after(() => requests[0]?.emit(textDelta('m', 'x')))
  expect(hook.current).toBe(value)
  expect(renders.mock.calls.length).toBe(before)
})

test('useChatSelector with an inline selector and equality keeps the value over renders, so that an effect on it ends', () => {
  const { wrapper } = chat(history(2))
  let renders = 0
  const { result: shown } = renderHook(
    () => {
      if (++renders > 20) throw new Error('It renders without end.')
      const selected = useChatSelector(
        ({ messages }) => ({ count: messages.length }),
        (a, b) => a.count === b.count,
      )
      const [kept, keep] = useState({ selected })
      useEffect(() => keep({ selected }), [selected])
      return kept.selected.count
    },
    { wrapper },
  )
  expect(shown.current).toBe(2)
})

test('useChatSelector reads with the selector of the present render', async () => {
  const { client, wrapper } = chat(history(3))
  const { result: hook, rerender } = renderHook(
    ({ at }) => useChatSelector(({ messages }) => messages[at]?.id),
    { wrapper, initialProps: { at: 0 } },
  )
  rerender({ at: 2 })
  expect(hook.current).toBe('h2')
  await after(() => client.clear())
  expect(hook.current).toBeUndefined()
})

test('usePendingApprovals renders when a request comes or is answered, not while text grows', async () => {
  const { client, requests, wrapper } = chat()
  const renders = vi.fn()
  const { result: hook } = renderHook(
    () => {
      renders()
      return usePendingApprovals()
    },
    { wrapper },
  )
  await after(() => client.sendMessage('tidy up'))
  await after(() => requests[0]?.emit(...gatedCall('c', 'old.log', 'm'), ...gatedCall('d', 'new.log', 'm')))
  expect(hook.current.map(({ id }) => id)).toEqual(['c', 'd'])

  await after(() => requests[0]?.emit(textStart('m2')))
  const before = renders.mock.calls.length
  for (let at = 0; at < 20; at++) await after(() => requests[0]?.emit(textDelta('m2', 'x')))
  expect(renders.mock.calls.length).toBe(before)

  await after(() => client.addToolApprovalResponse({ id: 'a-c', approved: true }))
  expect(hook.current.map(({ id }) => id)).toEqual(['d'])
})
