import { client, opened } from '@countersign/example-page/chat'
import '@countersign/example-page/chat.css'
import { ChatProvider } from '@countersign/solid'
import { render } from 'solid-js/web'
import { App } from './App.js'

const root = document.getElementById('root')
if (!root) throw new Error('index.html has no element with the id "root".')
await opened()
render(
  () => (
    <ChatProvider client={client}>
      <App />
    </ChatProvider>
  ),
  root,
)
