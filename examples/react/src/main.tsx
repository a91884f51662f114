import { ChatProvider } from '@countersign/react'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './App.js'
import './chat.css'
import { client } from './chat.js'

const root = document.getElementById('root')
if (!root) throw new Error('index.html has no element with the id "root".')
client.attach()
// A page that comes back begins with its conversation and not with an empty one; a store or tab that takes long does not hold it up.
await Promise.race([client.restore(), new Promise((resolve) => setTimeout(resolve, 300))])
createRoot(root).render(
  <StrictMode>
    <ChatProvider client={client}>
      <App />
    </ChatProvider>
  </StrictMode>,
)
