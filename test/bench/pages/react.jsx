import { Chat, useChat as useAiChat } from '@ai-sdk/react'
import { useChat, useMessage, useMessageIds } from '@countersign/react'
import { ChatClient } from '@tanstack/ai-client'
import { AbstractAgent } from 'ag-ui-client-1'
import { memo, useSyncExternalStore } from 'react'
import { createRoot } from 'react-dom/client'
import { Observable } from 'rxjs'
import { openStore } from './floor.js'
import { openChat } from './ours.js'
import { answer, ofRun, paced } from './paced.js'

/** The same row for everybody: drawn again only when its message is another object. */
const Row = memo(({ message, text, drawn }) => {
  drawn(message.id)
  return (
    <article data-message={message.id}>
      <p>{text(message)}</p>
    </article>
  )
})

function Rows({ messages, text, drawn }) {
  return messages.map((message) => <Row key={message.id} message={message} text={text} drawn={drawn} />)
}

function mount(target, page) {
  const root = createRoot(target)
  root.render(page)
  return () => root.unmount()
}

const plainText = (message) => message.text
const partText = (message) => message.parts[0]?.text
const contentOf = (message) => message.content
const partContent = (message) => message.parts[0]?.content

function FloorList({ store, drawn }) {
  const messages = useSyncExternalStore(store.subscribe, store.read)
  return <Rows messages={messages} text={plainText} drawn={drawn} />
}

function floor(target, setting, drawn) {
  const store = openStore(setting)
  return { unmount: mount(target, <FloorList store={store} drawn={drawn} />), play: store.play }
}

function OurList({ client, drawn }) {
  return <Rows messages={useChat({ client }).messages} text={partText} drawn={drawn} />
}

function ours(target, setting, drawn) {
  const { client, play } = openChat(setting)
  return { unmount: mount(target, <OurList client={client} drawn={drawn} />), play }
}

const OurRow = memo(({ id, within, drawn }) => {
  drawn(id)
  return (
    <article data-message={id}>
      <p>{partText(useMessage(id, within))}</p>
    </article>
  )
})

function OurIds({ within, drawn }) {
  return useMessageIds(within).map((id) => <OurRow key={id} id={id} within={within} drawn={drawn} />)
}

function oursByMessage(target, setting, drawn) {
  const { client, play } = openChat(setting)
  return { unmount: mount(target, <OurIds within={{ client }} drawn={drawn} />), play }
}

function AiList({ chat, drawn }) {
  return <Rows messages={useAiChat({ chat }).messages} text={partText} drawn={drawn} />
}

function aiSdk(target, { history, deltas }, drawn) {
  const chat = new Chat({
    messages: history.map(({ id, role, text }) => ({ id, role, parts: [{ type: 'text', text }] })),
    generateId: () => 'm',
    transport: {
      async sendMessages() {
        const chunks = [
          { type: 'text-start', id: 't' },
          ...deltas.map((delta) => ({ type: 'text-delta', id: 't', delta })),
          { type: 'text-end', id: 't' },
        ]
        const source = paced(chunks)
        return new ReadableStream({
          async pull(controller) {
            const { value, done } = await source.next()
            if (done) controller.close()
            else controller.enqueue(value)
          },
        })
      },
      reconnectToStream: async () => null,
    },
  })
  return {
    unmount: mount(target, <AiList chat={chat} drawn={drawn} />),
    play: () => chat.sendMessage({ id: 'go', role: 'user', parts: [{ type: 'text', text: 'go' }] }),
  }
}

/** A hook by hand: the package for React is not installed, and would do the same. */
function listen() {
  let messages = []
  const listeners = new Set()
  return {
    set(next) {
      messages = next
      for (const listener of listeners) listener()
    },
    read: () => messages,
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

function ShownList({ shown, text, drawn }) {
  return <Rows messages={useSyncExternalStore(shown.subscribe, shown.read)} text={text} drawn={drawn} />
}

function tanstack(target, { history, deltas }, drawn) {
  const shown = listen()
  const client = new ChatClient({
    threadId: 'thread',
    initialMessages: history.map(({ id, role, text }) => ({
      id,
      role,
      parts: [{ type: 'text', content: text }],
    })),
    onMessagesChange: shown.set,
    connection: {
      connect: (_messages, _data, _signal, run) => paced(ofRun(run, answer(deltas))),
    },
  })
  shown.set(client.getMessages())
  return {
    unmount: mount(target, <ShownList shown={shown} text={partContent} drawn={drawn} />),
    play: () => client.sendMessage('go'),
  }
}

class LocalAgent extends AbstractAgent {
  constructor(deltas, config) {
    super(config)
    this.deltas = deltas
  }

  run({ threadId, runId }) {
    return new Observable((subscriber) => {
      const play = async () => {
        subscriber.next({ type: 'RUN_STARTED', threadId, runId })
        for await (const event of paced(answer(this.deltas))) subscriber.next(event)
        subscriber.next({ type: 'RUN_FINISHED', threadId, runId })
        subscriber.complete()
      }
      play().catch((error) => subscriber.error(error))
    })
  }
}

function agUi(target, { history, deltas }, drawn) {
  const shown = listen()
  const agent = new LocalAgent(deltas, {
    threadId: 'thread',
    initialMessages: history.map(({ id, role, text }) => ({ id, role, content: text })),
  })
  agent.subscribe({ onMessagesChanged: ({ messages }) => shown.set([...messages]) })
  shown.set(agent.messages)
  return {
    unmount: mount(target, <ShownList shown={shown} text={contentOf} drawn={drawn} />),
    play() {
      agent.addMessage({ id: 'go', role: 'user', content: 'go' })
      return agent.runAgent({})
    },
  }
}

export const pages = {
  floor,
  countersign: ours,
  'countersign-by-message': oursByMessage,
  'ai-sdk': aiSdk,
  tanstack,
  'ag-ui': agUi,
}
