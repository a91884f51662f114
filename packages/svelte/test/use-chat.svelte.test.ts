import { ChatClient, type Connection, type UIMessage } from '@countersign/client'
import {
  createChat,
  getChat,
  setChat,
  type UseChat,
  useChat,
  useChatClient,
  useChatSelector,
  useMessage,
  useMessageIds,
  usePendingApprovals,
} from '@countersign/svelte'
import {
  byHand,
  finish,
  gated,
  passMacrotasks,
  resolve,
  scriptedConnection,
  text,
  textDelta,
  textStart,
} from '@countersign/testing'
import { mount, tick, unmount } from 'svelte'
import { expect, onTestFinished, test, vi } from 'vitest'
import Setup from './Setup.svelte'

const notify = 'sync'

/** Does something and lets everything happen that follows from it. */
async function after(deed: () => unknown = () => {}): Promise<void> {
  void deed()
  for (let round = 0; round < 2; round++) {
    await passMacrotasks(2)
    await tick()
  }
}

/** Effects outside of components: what each saw, run by run. */
async function watched(effects: Record<string, () => unknown>) {
  const seen: Record<string, unknown[]> = {}
  const end = $effect.root(() => {
    for (const [name, read] of Object.entries(effects)) {
      const values: unknown[] = []
      seen[name] = values
      $effect(() => void values.push(read()))
    }
  })
  onTestFinished(end)
  await after()
  const clear = () => {
    for (const values of Object.values(seen)) values.length = 0
  }
  return { seen, end, clear }
}

/** A component, maybe with another one below. */
function component(setup: () => void, below?: () => void) {
  const app = mount(Setup, { target: document.body, props: { setup, below } })
  let ended: Promise<void> | undefined
  const end = () => {
    ended ??= unmount(app)
    return ended
  }
  onTestFinished(end)
  return end
}

const history = (count: number): UIMessage[] =>
  Array.from({ length: count }, (_, at) => ({
    id: `h${at}`,
    role: 'user',
    parts: [{ type: 'text', text: `message ${at}` }],
  }))

test('S4.85 an effect runs again only when a field that it reads is another', async () => {
  const server = scriptedConnection([byHand])
  const chat = createChat({ connection: server, notify })
  const { seen, clear } = await watched({
    status: () => chat.status,
    isLoading: () => chat.isLoading,
    error: () => chat.error,
    pendingApprovals: () => chat.pendingApprovals.length,
    queue: () => chat.queue.length,
    threadId: () => chat.threadId,
    client: () => chat.client.threadId,
    messages: () => chat.messages.length,
  })
  await after(() => chat.sendMessage('hello'))
  const run = await server.request(1)
  await after(() => run.emit(textStart(), textDelta('0')))
  expect(seen['status']).toEqual(['ready', 'submitted', 'streaming'])
  expect(seen['isLoading']).toEqual([false, true])

  clear()
  for (let at = 0; at < 50; at++) await after(() => run.emit(textDelta('.')))
  const runs = Object.entries(seen).map(([name, values]) => [name, values.length])
  expect(Object.fromEntries(runs)).toEqual({
    status: 0,
    isLoading: 0,
    error: 0,
    pendingApprovals: 0,
    queue: 0,
    threadId: 0,
    client: 0,
    messages: 50,
  })
  await after(() => run.emit(finish()))
})

test('S4.85 the selector forms run an effect only for what they select', async () => {
  const server = scriptedConnection([byHand])
  const client = new ChatClient({ connection: server, notify, initialMessages: history(3) })
  const within = { client }
  const first = useMessage('h0', within)
  const last = useMessage(() => ids.current.at(-1) ?? '', within)
  const ids = useMessageIds(within)
  const pending = usePendingApprovals(within)
  const count = useChatSelector(({ messages }) => messages.length, undefined, within)
  const roles = useChatSelector(
    ({ messages }) => messages.map(({ role }) => role),
    (a, b) => a.join() === b.join(),
    within,
  )
  const { seen, clear } = await watched({
    first: () => first.current?.id,
    last: () => last.current?.parts.length,
    ids: () => ids.current.length,
    pending: () => pending.current.length,
    count: () => count.current,
    roles: () => roles.current.join(),
  })
  await after(() => client.sendMessage('go'))
  const run = await server.request(1)
  await after(() => run.emit(textStart(), textDelta('0')))
  expect(seen['count']).toEqual([3, 4, 5])
  expect(seen['last']?.at(-1)).toEqual(1)
  clear()
  for (let at = 0; at < 20; at++) await after(() => run.emit(textDelta('.')))
  const runs = Object.entries(seen).map(([name, values]) => [name, values.length])
  expect(Object.fromEntries(runs)).toEqual({ first: 0, last: 20, ids: 0, pending: 0, count: 0, roles: 0 })
})

test('a selector follows $state that it reads, and outside of effects every reading is of the present', async () => {
  const client = new ChatClient({ connection: scriptedConnection([]), initialMessages: history(3) })
  let at = $state(0)
  const chosen = useChatSelector(({ messages }) => messages[at]?.id, undefined, { client })
  const message = useMessage(() => `h${at}`, { client })
  const { seen } = await watched({ chosen: () => chosen.current, message: () => message.current?.id })
  at = 2
  expect([chosen.current, message.current?.id]).toEqual(['h2', 'h2'])
  await after()
  expect(seen).toEqual({ chosen: ['h0', 'h2'], message: ['h0', 'h2'] })
})

test('an effect gets the error of a selector instead of the value before it, and then the next value', async () => {
  const client = new ChatClient({ connection: scriptedConnection([]), initialMessages: history(1) })
  const within = { client }
  const few = ({ messages }: { messages: readonly unknown[] }) => {
    if (messages.length > 1) throw new Error(`${messages.length} messages`)
    return messages.length
  }
  const count = useChatSelector(few, undefined, within)
  const read = () => {
    try {
      return count.current
    } catch (error) {
      return String(error)
    }
  }
  const { seen } = await watched({ read })
  for (const length of [2, 3, 1]) await after(() => client.setMessages(history(length)))
  expect(seen).toEqual({ read: [1, 'Error: 2 messages', 'Error: 3 messages', 1] })
})

test('S4.87 actions are the same functions and may be taken out: they act on the client of the day', async () => {
  const server = scriptedConnection([], { otherwise: [text('Yes.')] })
  let threadId = $state('a')
  const chat = createChat(() => ({ connection: server, notify, threadId }))
  const { sendMessage, addToolApprovalResponse } = chat
  await after(() => sendMessage('one'))
  threadId = 'b'
  // At once, before any effect could have told of the other thread.
  void sendMessage('two')
  expect([chat.threadId, chat.messages.length]).toEqual(['b', 1])
  await after()
  expect(server.requests.map((request) => request.threadId)).toEqual(['a', 'b'])
  expect([
    chat.sendMessage === sendMessage,
    chat.addToolApprovalResponse === addToolApprovalResponse,
  ]).toEqual([true, true])
})

test('what is sent in the tick of a new option goes with it', async () => {
  const server = scriptedConnection([], { otherwise: [text('Yes.')] })
  let tone = $state('dry')
  const chat = createChat(() => ({ connection: server, notify, forwardedProps: { tone } }))
  await watched({ status: () => chat.status })
  tone = 'warm'
  await after(() => chat.sendMessage('hello'))
  expect(server.requests.map(({ forwardedProps }) => forwardedProps)).toEqual([{ tone: 'warm' }])
})

test('options that are $state are followed without a function; only another thread runs an effect', async () => {
  const server = scriptedConnection([byHand, [text('In b.')]])
  const options: { connection: Connection; notify: 'sync'; threadId: string; forwardedProps?: unknown } =
    $state({
      connection: server,
      notify,
      threadId: 'a',
    })
  const chat = createChat(options)
  const { seen } = await watched({ thread: () => chat.threadId, count: () => chat.messages.length })
  await after(() => chat.sendMessage('in a'))
  const run = await server.request(1)
  options.forwardedProps = 'set later'
  await after()
  expect(seen).toEqual({ thread: ['a'], count: [0, 1] })
  options.threadId = 'b'
  await after()
  expect(seen).toEqual({ thread: ['a', 'b'], count: [0, 1, 0] })
  await after(() => run.emit(text('late'), finish()))
  expect([await run.closed, seen['count']]).toEqual(['finished', [0, 1, 0]])
  await after(() => chat.sendMessage('in b'))
  expect(server.requests.map(({ forwardedProps }) => forwardedProps)[1]).toEqual('set later')
  options.threadId = 'a'
  await after()
  expect([seen['thread'], seen['count']?.at(-1)]).toEqual([['a', 'b', 'a'], 2])
})

test('options are followed by a client that only waits, and taken back when they are given no longer', async () => {
  const server = scriptedConnection([byHand])
  const finished = vi.fn()
  let onFinish: (() => void) | undefined = $state.raw(() => finished('first'))
  const chat = createChat(() => ({ connection: server, notify, ...(onFinish && { onFinish }) }))
  await watched({ status: () => chat.status })
  await after(() => chat.sendMessage('hello'))
  onFinish = undefined
  await after()
  const run = await server.request(1)
  await after(() => run.emit(finish()))
  expect([chat.status, finished.mock.calls]).toEqual(['ready', []])
})

test('the page is attached from the first effect that reads on, and until the last is gone', async () => {
  const client = new ChatClient({ connection: scriptedConnection([]) })
  const log: string[] = []
  const { attach } = client
  client.attach = () => {
    log.push('attach')
    const detach = attach()
    return () => {
      log.push('detach')
      detach()
    }
  }
  const chat = createChat({ client })
  expect([chat.status, log]).toEqual(['ready', []])
  const one = await watched({ status: () => chat.status })
  const two = await watched({ status: () => chat.status })
  expect(log).toEqual(['attach'])
  one.end()
  await after()
  expect(log).toEqual(['attach'])
  two.end()
  await after()
  expect(log).toEqual(['attach', 'detach'])
  await watched({ status: () => chat.status })
  expect(log).toEqual(['attach', 'detach', 'attach'])
})

test('an effect that is gone before the page was attached attaches nothing', async () => {
  const client = new ChatClient({ connection: scriptedConnection([]) })
  client.attach = vi.fn(client.attach)
  const chat = createChat({ client })
  const end = $effect.root(() => {
    $effect.pre(() => void chat.status)
  })
  end()
  await after()
  expect(client.attach).not.toHaveBeenCalled()
})

test('a $derived of a field is up to date with and without an effect', async () => {
  const server = scriptedConnection([[text('Hi.')]])
  const chat = createChat({ connection: server, notify })
  const count = $derived(chat.messages.length)
  const read = () => count
  expect(read()).toBe(0)
  await after(() => chat.sendMessage('hello'))
  expect(read()).toBe(2)
  const { seen, end } = await watched({ read })
  await after(() => chat.clear())
  end()
  await after()
  expect([read(), seen['read']]).toEqual([0, [2, 0]])
})

test('setChat provides: createChat(), useChat() and getChat() give its chat, the others read it', async () => {
  const server = scriptedConnection([gated(1), [resolve(), text('Done.')]])
  const got: { above?: UseChat; below: UseChat[]; pending?: ReturnType<typeof usePendingApprovals> } = {
    below: [],
  }
  component(
    () => {
      got.above = setChat({ connection: server, notify })
    },
    () => {
      got.below = [createChat(), useChat(), getChat()]
      got.pending = usePendingApprovals()
    },
  )
  expect(got.below.map((chat) => chat === got.above)).toEqual([true, true, true])
  await after(() => got.above?.sendMessage('tidy up'))
  expect(got.pending?.current.map(({ id }) => id)).toEqual(['c1'])
  await after(() => got.below[0]?.addToolApprovalResponse({ id: 'a1', approved: true }))
  expect([got.pending?.current, got.above?.status]).toEqual([[], 'ready'])
})

test('below setChat options of a page stand over the provided ones, and a thread is one client for all pages', async () => {
  const server = scriptedConnection([], { otherwise: [text('Yes.')] })
  let provided = $state('provided')
  let own: string | undefined = $state('own')
  const chats: UseChat[] = []
  component(
    () => void setChat(() => ({ connection: server, notify, forwardedProps: provided })),
    () => {
      chats.push(createChat(() => ({ threadId: 'x', forwardedProps: own })))
      chats.push(createChat({ threadId: 'x' }))
    },
  )
  const [one, two] = chats
  expect(one?.client).toBe(two?.client)
  await after(() => one?.sendMessage('1'))
  own = undefined
  await after(() => one?.sendMessage('2'))
  provided = 'provided again'
  await after(() => one?.sendMessage('3'))
  expect(server.requests.map(({ forwardedProps }) => forwardedProps)).toEqual([
    'own',
    'provided',
    'provided again',
  ])
})

test('another provided client is another chat for every page below', async () => {
  const other = new ChatClient({ connection: scriptedConnection([]), initialMessages: history(2) })
  let client = $state.raw(new ChatClient({ connection: scriptedConnection([]) }))
  const counts: number[] = []
  const ids: number[] = []
  component(
    () => void setChat(() => ({ client })),
    () => {
      const chat = createChat(() => ({ headers: {} }))
      const messageIds = useMessageIds()
      $effect(() => void counts.push(chat.messages.length))
      $effect(() => void ids.push(messageIds.current.length))
    },
  )
  await after()
  client = other
  await after()
  expect([counts, ids]).toEqual([
    [0, 2],
    [0, 2],
  ])
})

test('useChatClient and a chat of a module, outside of components', async () => {
  let client = $state.raw(new ChatClient({ connection: scriptedConnection([]), threadId: 'a' }))
  const reading = useChatClient(() => ({ client }))
  const { seen } = await watched({ thread: () => reading.current.threadId })
  client = new ChatClient({ connection: scriptedConnection([]), threadId: 'b' })
  await after()
  expect(seen).toEqual({ thread: ['a', 'b'] })
})

test('unmounted while it streams: the run goes on', async () => {
  const server = scriptedConnection([byHand])
  const client = new ChatClient({ connection: server, notify })
  const seen: unknown[] = []
  const end = component(() => {
    const chat = createChat({ client })
    $effect(() => void seen.push(chat.status))
  })
  await after()
  await after(() => client.sendMessage('hello'))
  const run = await server.request(1)
  await end()
  await after(() => run.emit(text('Hi.'), finish()))
  expect([await run.closed, client.getSnapshot().messages.length, seen]).toEqual([
    'finished',
    2,
    ['ready', 'submitted'],
  ])
})

test('without a provider, a client or a connection the error names the way out', () => {
  for (const make of [() => createChat(), () => createChat({}), () => getChat(), () => useMessage('m')])
    expect(make).toThrow(/connection.*client.*provider/)
})

test('options of a component that is gone are those of the provider again', async () => {
  const connection = scriptedConnection([], { otherwise: [text('Yes.')] })
  const finished: string[] = []
  let chat: UseChat | undefined
  const dialog = () => {
    const own = createChat({ onFinish: () => finished.push('dialog'), forwardedProps: { tone: 'warm' } })
    $effect(() => void own.status)
  }
  const props: { setup: () => void; below?: (() => void) | undefined } = $state({
    setup: () => {
      const all = () => finished.push('all')
      chat = setChat({ connection, notify, forwardedProps: { tone: 'dry' }, onFinish: all })
    },
    below: dialog,
  })
  const app = mount(Setup, { target: document.body, props })
  onTestFinished(() => void unmount(app))
  await after()
  await after(() => chat?.sendMessage('hello'))
  props.below = undefined
  await after()
  await after(() => chat?.sendMessage('hello'))
  expect(connection.requests.map(({ forwardedProps }) => forwardedProps)).toEqual([
    { tone: 'warm' },
    { tone: 'dry' },
  ])
  expect(finished).toEqual(['dialog', 'all'])
})
