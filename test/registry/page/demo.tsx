'use client'

import { ChatClient, stream } from '@countersign/client'
import type { AGUIEvent } from '@countersign/core'
import { ChatProvider, useChat } from '@countersign/react'
import { useState } from 'react'
import { ApprovalDialog } from '@/components/approval-dialog'
import { PendingBar } from '@/components/pending-bar'

const call = { toolCallId: 'c1', toolCallName: 'delete_file' }
const input = { path: 'notes.txt' }
const approval = {
  id: 'a1',
  needsApproval: true,
  options: ['deny', 'once'],
  token: 't',
  message: 'For good.',
}
const asked: readonly AGUIEvent[] = [
  { type: 'TOOL_CALL_START', ...call },
  { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: JSON.stringify(input) },
  { type: 'TOOL_CALL_END', toolCallId: 'c1' },
  {
    type: 'CUSTOM',
    name: 'approval-requested',
    value: { ...call, toolName: 'delete_file', input, approval },
  },
]
const interrupt = { id: 'a1', reason: 'tool_call', toolCallId: 'c1' }

/** A server in the page: it asks once, and then says what it was answered. */
const connection = stream(async function* ({ threadId, runId, resume }): AsyncGenerator<AGUIEvent> {
  const run = { threadId, runId }
  yield { type: 'RUN_STARTED', ...run }
  if (resume === undefined) {
    yield* asked
    yield { type: 'RUN_FINISHED', ...run, outcome: { type: 'interrupt', interrupts: [interrupt] } }
    return
  }
  const delta = `answered: ${JSON.stringify(resume[0]?.payload)}`
  yield { type: 'TEXT_MESSAGE_START', messageId: 'm2', role: 'assistant' }
  yield { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm2', delta }
  yield { type: 'TEXT_MESSAGE_END', messageId: 'm2' }
  yield { type: 'RUN_FINISHED', ...run }
})

function Page() {
  const { turns, sendMessage } = useChat()
  const [open, setOpen] = useState(false)
  return (
    <main>
      <h1>Chat</h1>
      <button type="button" onClick={() => void sendMessage('delete notes.txt')}>
        Ask
      </button>
      {turns.flatMap(({ parts }) =>
        parts.flatMap((part, index) => (part.type === 'text' ? <p key={index}>{part.text}</p> : [])),
      )}
      <PendingBar onOpen={() => setOpen(true)} />
      <ApprovalDialog open={open} onClose={() => setOpen(false)} />
    </main>
  )
}

export function Demo() {
  const [client] = useState(() => new ChatClient({ connection }))
  return (
    <ChatProvider client={client}>
      <Page />
    </ChatProvider>
  )
}
