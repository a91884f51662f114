import { client, opened } from '@countersign/example-page/chat'
import '@countersign/example-page/chat.css'
import { ChatProvider } from '@countersign/react'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './App.js'

const root = document.getElementById('root')
if (!root) throw new Error('index.html has no element with the id "root".')
await opened()
createRoot(root).render(
  <StrictMode>
    <ChatProvider client={client}>
      <App />
    </ChatProvider>
  </StrictMode>,
)
