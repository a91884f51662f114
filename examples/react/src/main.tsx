import { ChatProvider } from '@countersign/react'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './App.js'
import './chat.css'
import { client } from './chat.js'

const root = document.getElementById('root')
if (!root) throw new Error('index.html has no element with the id "root".')
createRoot(root).render(
  <StrictMode>
    <ChatProvider client={client}>
      <App />
    </ChatProvider>
  </StrictMode>,
)
