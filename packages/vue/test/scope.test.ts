import { ChatClient } from '@countersign/client'
import {
  byHand,
  finish,
  gated,
  scriptedConnection,
  text,
  textDelta,
  textEnd,
  textStart,
} from '@countersign/testing'
import { useChat, useMessage, useMessageIds } from '@countersign/vue'
import { expect, test, vi } from 'vitest'
import {
  type Component,
  defineComponent,
  effectScope,
  h,
  onScopeDispose,
  ref,
  Suspense,
  shallowRef,
  watch,
} from 'vue'
import { after, component, expectNoWarnings, mount } from './stage.js'

expectNoWarnings()

/** Runs something in an effect scope of its own, outside of any component. */
function inScope<T>(work: () => T): { readonly result: T; stop(): void } {
  const scope = effectScope()
  const result = scope.run(work)
  if (result === undefined) throw new Error('The scope has given nothing.')
  return { result, stop: () => scope.stop() }
}

test('a scope outside of components has the chat at once, and the refs follow', async () => {
  const server = scriptedConnection([gated(1)])
  const { result, stop } = inScope(() => useChat({ connection: server, notify: 'sync' }))
  await after(() => result.sendMessage('tidy up'))
  expect([result.status.value, result.pendingApprovals.value.length]).toEqual(['awaiting-approval', 1])
  stop()
})

test('the end of a scope detaches and listens no more; the run goes on', async () => {
  const server = scriptedConnection([byHand])
  const client = new ChatClient({ connection: server, notify: 'sync' })
  const detach = vi.fn()
  vi.spyOn(client, 'attach').mockImplementation(() => detach)
  const changes = vi.fn()
  const { stop } = inScope(() => {
    const chat = useChat({ client })
    watch(chat.messages, changes, { flush: 'sync' })
    return chat
  })
  await after(() => client.sendMessage('hello'))
  const run = await server.request(1)
  await after(() => run.emit(textStart(), textDelta('half')))
  stop()
  const before = changes.mock.calls.length
  expect(detach).toHaveBeenCalledOnce()
  await after(() => run.emit(textDelta(' and half'), textEnd(), finish()))
  expect([await run.closed, changes.mock.calls.length]).toEqual(['finished', before])
  expect(client.getSnapshot().status).toBe('ready')
})

test('a scope inside a component is listened to until it ends, or the component does', async () => {
  const server = scriptedConnection([], { otherwise: [text('Yes.')] })
  const client = new ChatClient({ connection: server, notify: 'sync' })
  const detach = vi.fn()
  vi.spyOn(client, 'attach').mockImplementation(() => detach)
  const inner = { stop: () => {}, isOver: false }
  const Page = component(() => {
    const scope = effectScope()
    inner.stop = () => scope.stop()
    scope.run(() => {
      onScopeDispose(() => {
        inner.isOver = true
      })
      useMessageIds({ client })
    })
    const ids = useMessageIds({ client })
    return () => h('p', String(ids.value.length))
  })
  const { container, unmount } = mount(Page)
  await after(() => client.sendMessage('hello'))
  inner.stop()
  expect([container.textContent, detach.mock.calls.length]).toEqual(['2', 1])
  unmount()
  expect([inner.isOver, detach.mock.calls.length]).toEqual([true, 2])
})

test('a scope that ends before its component is mounted never attaches', async () => {
  const client = new ChatClient({ connection: scriptedConnection([]) })
  const attach = vi.spyOn(client, 'attach')
  const Page = component(() => {
    const scope = effectScope()
    scope.run(() => useChat({ client }))
    scope.stop()
    return () => null
  })
  mount(Page)
  await after()
  expect(attach).not.toHaveBeenCalled()
})

test('who shows one message and turns to another never leaves the chat between the two', async () => {
  const client = new ChatClient({ connection: scriptedConnection([]) })
  const held: number[] = []
  let now = 0
  const { attach } = client
  vi.spyOn(client, 'attach').mockImplementation(() => {
    held.push(++now)
    const detach = attach()
    return () => {
      held.push(--now)
      detach()
    }
  })
  const id = ref('a')
  const Page = component(() => {
    const message = useMessage(id, { client })
    return () => message.value?.id ?? null
  })
  const { unmount } = mount(Page)
  await after()
  expect(held).toEqual([1])
  await after(() => {
    id.value = 'b'
  })
  expect(held).toEqual([1, 2, 1])
  unmount()
  expect(held).toEqual([1, 2, 1, 0])
})

test('a shared store is current, also if the component that created it was left before it was mounted', async () => {
  const client = new ChatClient({ connection: scriptedConnection([], { otherwise: [text('Yes.')] }) })
  const attach = vi.spyOn(client, 'attach')
  const store = effectScope(true)
  let chat: ReturnType<typeof useChat> | undefined
  const useStore = () => {
    chat ??= store.run(() => useChat({ client }))
    return chat?.messages.value.length
  }
  const Waiting = defineComponent({
    setup() {
      useStore()
      return new Promise<never>(() => {})
    },
  })
  const Page = component(() => () => h('p', useStore()))
  const page = shallowRef<Component>(Waiting)
  const { container } = mount(component(() => () => h(Suspense, () => h(page.value))))
  await after()
  await after(() => {
    page.value = Page
  })
  await after(() => client.sendMessage('hello'))
  expect([container.textContent, attach.mock.calls.length]).toEqual(['2', 1])
  store.stop()
})

test('a setup that has waited reads the present, and one that is left while it waits detaches', async () => {
  const client = new ChatClient({ connection: scriptedConnection([], { otherwise: [text('Yes.')] }) })
  const detach = vi.fn()
  vi.spyOn(client, 'attach').mockImplementation(() => detach)
  const seen: number[] = []
  const Page = defineComponent({
    async setup() {
      const { messages, sendMessage } = useChat({ client })
      await sendMessage('hello')
      seen.push(messages.value.length)
      return new Promise<never>(() => {})
    },
  })
  const { unmount } = mount(component(() => () => h(Suspense, () => h(Page))))
  await after()
  expect(seen).toEqual([2])
  unmount()
  expect(detach).toHaveBeenCalledOnce()
})
