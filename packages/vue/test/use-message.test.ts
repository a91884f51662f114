import { ChatClient, type UIMessage } from '@countersign/client'
import {
  byHand,
  finish,
  gated,
  resolve,
  scriptedConnection,
  textDelta,
  textEnd,
  textStart,
} from '@countersign/testing'
import { useChatSelector, useMessage, useMessageIds, usePendingApprovals } from '@countersign/vue'
import { expect, test, vi } from 'vitest'
import { defineComponent, h, isReactive, onUpdated, ref, watch } from 'vue'
import { after, component, expectNoWarnings, mount, withSetup } from './stage.js'

expectNoWarnings()

const history = (count: number): UIMessage[] =>
  Array.from({ length: count }, (_, at) => ({
    id: `h${at}`,
    role: at % 2 === 0 ? 'user' : 'assistant',
    parts: [{ type: 'text', text: `message ${at}` }],
  }))

function chat(runs: Parameters<typeof scriptedConnection>[0], initialMessages: readonly UIMessage[] = []) {
  const server = scriptedConnection(runs)
  return { server, client: new ChatClient({ connection: server, notify: 'sync', initialMessages }) }
}

test('only the component of the streaming message updates, by onUpdated: 200 messages, 500 deltas', async () => {
  const { server, client } = chat([byHand], history(200))
  const updates = new Map<string, number>()
  const count = (name: string) => void updates.set(name, (updates.get(name) ?? 0) + 1)
  const Message = defineComponent({
    props: { id: { type: String, required: true } },
    setup(props) {
      const message = useMessage(() => props.id, { client })
      onUpdated(() => count(props.id))
      return () => h('p', JSON.stringify(message.value?.parts))
    },
  })
  const List = component(() => {
    const ids = useMessageIds({ client })
    onUpdated(() => count('list'))
    return () => ids.value.map((id) => h(Message, { key: id, id }))
  })
  const { container } = mount(List)
  await after(() => client.sendMessage('go'))
  const run = await server.request(1)
  await after(() => run.emit(textStart(), textDelta('0')))
  const streaming = client.getMessageIds().at(-1) ?? ''
  updates.clear()
  for (let at = 1; at <= 500; at += 50)
    await after(() => run.emit(...Array.from({ length: 50 }, (_, more) => textDelta(`.${at + more}`))))
  expect([...updates.keys()]).toEqual([streaming])
  expect(container.textContent).toContain('.499.500')
})

test('useMessage follows its id, gives what the client holds, and is undefined for one that is not there', async () => {
  const { client } = chat([], history(3))
  const id = ref('h0')
  const { result: message } = withSetup(() => useMessage(id, { client }))
  expect(message.value).toBe(client.getMessage('h0'))
  expect(isReactive(message.value)).toBe(false)
  id.value = 'h2'
  expect(message.value?.id).toBe('h2')
  id.value = 'none'
  expect(message.value).toBeUndefined()
  id.value = 'h1'
  await after(() => client.clear())
  expect(message.value).toBeUndefined()
})

test('useMessage listens to the message of the moment only', async () => {
  const { server, client } = chat([byHand], history(2))
  const leave = vi.fn()
  const { subscribeMessage } = client
  vi.spyOn(client, 'subscribeMessage').mockImplementation((id, listener) => {
    const own = subscribeMessage(id, listener)
    return () => {
      leave(id)
      own()
    }
  })
  const id = ref('h0')
  const { unmount } = withSetup(() => useMessage(id, { client }))
  await after()
  id.value = 'h1'
  await after()
  expect(leave.mock.calls).toEqual([['h0']])
  unmount()
  expect(leave.mock.calls).toEqual([['h0'], ['h1']])
  expect(server.requests).toEqual([])
})

test('useMessageIds is the same array while no message comes or goes', async () => {
  const { server, client } = chat([byHand])
  const { result: ids } = withSetup(() => useMessageIds({ client }))
  await after(() => client.sendMessage('hello'))
  const run = await server.request(1)
  await after(() => run.emit(textStart(), textDelta('a')))
  const before = ids.value
  expect(before).toHaveLength(2)
  await after(() => run.emit(textDelta('b'), textEnd(), finish()))
  expect(ids.value).toBe(before)
})

test('useChatSelector changes when what it selects is no longer equal, and follows the refs it reads', async () => {
  const { server, client } = chat([byHand], history(3))
  const at = ref(0)
  const changes = vi.fn()
  const { result } = withSetup(() => {
    const id = useChatSelector(({ messages }) => messages[at.value]?.id, undefined, { client })
    const ids = useChatSelector(
      ({ messages }) => messages.map((message) => message.id),
      (a, b) => a.join() === b.join(),
      { client },
    )
    watch(ids, changes, { flush: 'sync' })
    return { id, ids }
  })
  at.value = 2
  expect(result.id.value).toBe('h2')
  await after(() => client.sendMessage('hello'))
  const run = await server.request(1)
  await after(() => run.emit(textStart()))
  const before = { ids: result.ids.value, changes: changes.mock.calls.length }
  await after(() => run.emit(...Array.from({ length: 20 }, () => textDelta('x'))))
  expect({ ids: result.ids.value, changes: changes.mock.calls.length }).toEqual(before)
  expect(result.ids.value).toBe(before.ids)
})

test('usePendingApprovals changes when a request comes or is answered, not while text grows', async () => {
  const { server, client } = chat([gated(1), byHand])
  const changes = vi.fn()
  const { result: pending } = withSetup(() => {
    const approvals = usePendingApprovals({ client })
    watch(approvals, changes, { flush: 'sync' })
    return approvals
  })
  await after(() => client.sendMessage('tidy up'))
  expect(pending.value.map(({ approval }) => approval?.id)).toEqual(['a1'])
  await after(() => client.addToolApprovalResponse({ id: 'a1', approved: true }))
  expect(pending.value).toEqual([])
  const before = changes.mock.calls.length
  const run = await server.request(2)
  await after(() => run.emit(resolve(), textStart(), textDelta('a'), textDelta('b')))
  expect(changes.mock.calls.length).toBe(before)
})
