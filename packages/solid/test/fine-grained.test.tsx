/** @jsxImportSource solid-js */
import { ChatClient, type MessagePart, type UIMessage } from '@countersign/client'
import { ChatProvider, useChat, useChatSelector, useMessage, useMessageIds } from '@countersign/solid'
import {
  byHand,
  finish,
  passMacrotasks,
  resolve,
  scriptedConnection,
  textDelta,
  textEnd,
  textStart,
} from '@countersign/testing'
import { createEffect, For, Index, type JSX } from 'solid-js'
import { render } from 'solid-js/web'
import { expect, onTestFinished, test, vi } from 'vitest'

const history: readonly UIMessage[] = Array.from({ length: 50 }, (_, at) => ({
  id: `h${at}`,
  role: at % 2 === 0 ? 'user' : 'assistant',
  parts: [{ type: 'text', text: `message ${at}` }],
}))

function start(initialMessages: readonly UIMessage[] = history) {
  const server = scriptedConnection([byHand, byHand])
  const client = new ChatClient({ connection: server, notify: 'sync', initialMessages })
  const container = document.createElement('div')
  document.body.append(container)
  onTestFinished(() => container.remove())
  /** Shows a page, and says what changed in it since the last time it was asked. */
  function show(page: () => JSX.Element): () => MutationRecord[] {
    onTestFinished(render(page, container))
    const changes: MutationRecord[] = []
    const observer = new MutationObserver((records) => void changes.push(...records))
    observer.observe(container, { subtree: true, childList: true, characterData: true, attributes: true })
    return () => changes.splice(0)
  }
  return { server, client, container, show }
}

/** Sends, and gives the run once it is open and has begun to write. */
async function writing({ server, client }: ReturnType<typeof start>) {
  void client.sendMessage('go')
  const run = await server.request(1)
  run.emit(textStart(), textDelta('0'))
  await passMacrotasks()
  return run
}

test('S4.83 a delta changes the data of one text node, and no component runs again', async () => {
  const chat = start()
  const ran: string[] = []
  const Message = (props: { id: string }) => {
    ran.push(props.id)
    const message = useMessage(() => props.id)
    return (
      <article data-id={props.id}>
        <Index each={message()?.parts}>
          {(part) => {
            ran.push('part')
            return <p>{textOf(part())}</p>
          }}
        </Index>
      </article>
    )
  }
  const List = () => {
    ran.push('list')
    return <For each={useMessageIds()()}>{(id) => <Message id={id} />}</For>
  }
  const changes = chat.show(() => (
    <ChatProvider client={chat.client}>
      <List />
    </ChatProvider>
  ))
  const run = await writing(chat)
  const [before, node] = [ran.length, chat.container.querySelector('article:last-child p')?.firstChild]
  changes()
  for (let at = 1; at <= 100; at++) {
    run.emit(textDelta(`.${at}`))
    await passMacrotasks()
    expect(changes().map(({ type, target }) => [type, target === node])).toEqual([['characterData', true]])
  }
  expect(node?.textContent?.endsWith('.99.100')).toBe(true)
  expect(ran.length).toBe(before)
})

test('S4.83 the same with chat.messages in an <Index>, without useMessage', async () => {
  const chat = start()
  const ran = vi.fn()
  const Page = () => {
    ran()
    const page = useChat({ client: chat.client })
    return (
      <main data-status={page.status} data-loading={String(page.isLoading)}>
        <Index each={page.messages}>
          {(message) => <Index each={message().parts}>{(part) => <p>{textOf(part())}</p>}</Index>}
        </Index>
      </main>
    )
  }
  const changes = chat.show(() => <Page />)
  const run = await writing(chat)
  changes()
  run.emit(textDelta('.1'))
  await passMacrotasks()
  expect(changes().map(({ type }) => type)).toEqual(['characterData'])
  expect(ran).toHaveBeenCalledTimes(1)
})

const textOf = (part: MessagePart) => (part.type === 'text' ? part.text : '')
const stateOf = (part: MessagePart) => (part.type === 'tool-call' ? part.state : 'text')

test('a part that did not change is left alone while another part of its message is answered', async () => {
  const approval = { id: 'a1', needsApproval: true as const, options: ['deny' as const, 'once' as const] }
  const gated: UIMessage = {
    id: 'm',
    role: 'assistant',
    parts: [
      { type: 'text', text: 'Shall I?' },
      { type: 'tool-call', id: 'c1', name: 'f', arguments: '{}', state: 'approval-requested', approval },
      { type: 'text', text: 'I wait.' },
    ],
  }
  const chat = start([gated])
  const seen: string[] = []
  const Message = () => {
    const message = useMessage('m', { client: chat.client })
    return (
      <Index each={message()?.parts}>
        {(part, at) => {
          seen.push(`new ${at}`)
          createEffect(() => void seen.push(`${at} ${stateOf(part())}`))
          return <p>{textOf(part())}</p>
        }}
      </Index>
    )
  }
  chat.show(() => <Message />)
  seen.length = 0
  void chat.client.addToolApprovalResponse({ id: 'a1', approved: true })
  const run = await chat.server.request(1)
  run.emit(resolve(), finish())
  await passMacrotasks(3)
  // The result is a part of its own, at the end.
  const told = new Set(seen.filter((entry) => !entry.includes('3')))
  expect([...told]).toEqual(['1 approval-responded', '1 complete'])
})

test('an effect that reads one field runs only when that field is another', async () => {
  const chat = start()
  const seen: Record<'status' | 'loading' | 'count' | 'pending', unknown[]> = {
    status: [],
    loading: [],
    count: [],
    pending: [],
  }
  const Watcher = () => {
    const page = useChat({ client: chat.client })
    const count = useChatSelector(({ messages }) => messages.length, undefined, { client: chat.client })
    createEffect(() => seen.status.push(page.status))
    createEffect(() => seen.loading.push(page.isLoading))
    createEffect(() => seen.pending.push(page.pendingApprovals.length))
    createEffect(() => seen.count.push(count()))
    return null
  }
  chat.show(() => <Watcher />)
  const run = await writing(chat)
  for (let at = 0; at < 20; at++) run.emit(textDelta('x'))
  await passMacrotasks(2)
  run.emit(textEnd(), finish())
  await passMacrotasks(2)
  expect(seen).toEqual({
    status: ['ready', 'submitted', 'streaming', 'ready'],
    loading: [false, true, false],
    count: [50, 51, 52],
    pending: [0],
  })
})
