import { ChatProvider, useChat } from '@countersign/solid'
import { Index, Match, Switch } from 'solid-js'
import { render } from 'solid-js/web'
import './parts/base.css'
import { Announcer } from './parts/Announcer.js'
import { PendingBar } from './parts/PendingBar.js'
import { ToolCard } from './parts/ToolCard.js'
import { edits, newClient } from './server.js'

function Page() {
  const chat = useChat()
  return (
    <main>
      <h1>Chat</h1>
      <button type="button" onClick={() => void chat.sendMessage('Write door.txt')}>
        Ask
      </button>
      <Index each={chat.turns.flatMap(({ parts }) => parts)}>
        {(part) => {
          const text = () => {
            const now = part()
            return now.type === 'text' ? now.text : undefined
          }
          const call = () => {
            const now = part()
            return now.type === 'tool-call' ? now : undefined
          }
          return (
            <Switch>
              <Match when={text()}>{(text) => <p>{text()}</p>}</Match>
              <Match when={call()}>{(call) => <ToolCard part={call()} edits={edits} />}</Match>
            </Switch>
          )
        }}
      </Index>
      <PendingBar />
      <Announcer />
    </main>
  )
}

const root = document.getElementById('root')
const client = newClient()
if (root)
  render(
    () => (
      <ChatProvider client={client}>
        <Page />
      </ChatProvider>
    ),
    root,
  )
