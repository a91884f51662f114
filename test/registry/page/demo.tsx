'use client'

import { ChatProvider, useChat } from '@countersign/react'
import { useState } from 'react'
import { Announcer } from '@/components/announcer'
import { PendingBar } from '@/components/pending-bar'
import { ToolCard } from '@/components/tool-card'
import { edits, newClient } from './server'

function Page() {
  const { turns, sendMessage } = useChat()
  return (
    <main>
      <h1>Chat</h1>
      <button type="button" onClick={() => void sendMessage('Write door.txt')}>
        Ask
      </button>
      {turns
        .flatMap(({ parts }) => parts)
        .map((part, index) =>
          part.type === 'text' ? (
            <p key={index}>{part.text}</p>
          ) : part.type === 'tool-call' ? (
            <ToolCard key={index} part={part} edits={edits} />
          ) : null,
        )}
      <PendingBar />
      <Announcer />
    </main>
  )
}

export function Demo() {
  const [client] = useState(newClient)
  return (
    <ChatProvider client={client}>
      <Page />
    </ChatProvider>
  )
}
