'use client'

import { approvalView, type InitialThread, nextStep, type Turn } from '@countersign/client'
import { serverThreads } from '@countersign/client/server-threads'
import { queuedText, unsentIn } from '@countersign/client/ui'
import { useChat } from '@countersign/react'
import { useEffect } from 'react'

const threads = serverThreads('/api/chat')

/** Each step of a reply has its own text. Of a call it says why its answer was refused or did not arrive. */
const textOf = (parts: Turn['parts']) =>
  parts
    .flatMap((part) => {
      if (part.type === 'text') return part.text
      return (part.type === 'tool-call' && nextStep(part)?.message) || []
    })
    .join('\n')

interface Given {
  threadId?: string
  initialThread?: InitialThread
}

export function Chat({ threadId, initialThread }: Given) {
  const chat = useChat({ ...threads, threadId, initialThread })
  const { turns, pendingApprovals, queue, status, error } = chat
  const { sendMessage, retry, addToolApprovalResponse } = chat
  // A new conversation gets its id with its first message. In the address, it can be opened again.
  useEffect(() => {
    if (threadId === undefined && chat.threadId !== '')
      history.replaceState(null, '', `/chat/${chat.threadId}`)
  }, [threadId, chat.threadId])
  const unsent = unsentIn(chat)
  const questions = pendingApprovals.flatMap((call) => approvalView(call) ?? [])
  return (
    <>
      {turns.map(({ id, role, parts }) => (
        <p key={id} style={{ whiteSpace: 'pre-line' }}>
          {role}: {textOf(parts)}
        </p>
      ))}
      {questions.map(({ id, title, arguments: shown, choices, edit }) => (
        <fieldset key={id}>
          <legend>May {title.text} run?</legend>
          <pre>{shown?.text.text}</pre>
          {choices.map(({ option, label, disabled, response }) => (
            <button
              key={option}
              type="button"
              disabled={disabled}
              onClick={(event) => event.detail < 2 && addToolApprovalResponse(response)}
            >
              {label}
            </button>
          ))}
          {edit.status === 'offered' && (
            <form
              action={(form) => {
                const input = { ...Object(edit.input), count: Number(form.get('count')) }
                addToolApprovalResponse({ id, approved: true, input })
              }}
            >
              <input
                name="count"
                type="number"
                min="1"
                defaultValue={Object(edit.input).count}
                aria-label="Count"
              />
              <button
                type="submit"
                disabled={edit.disabled}
                onClick={(event) => event.detail > 1 && event.preventDefault()}
              >
                Approve This Count
              </button>
            </form>
          )}
        </fieldset>
      ))}
      {queue.map((queued) => (
        <p key={queued.id}>Not sent yet: {queuedText(queued)}</p>
      ))}
      {status === 'reconnecting' && <p>The connection was lost. Trying again.</p>}
      {error && (
        <p role="alert">
          {error.message}{' '}
          <button type="button" onClick={() => retry()}>
            Retry
          </button>
        </p>
      )}
      {unsent && (
        <p role="status">
          {unsent.title}{' '}
          <button type="button" onClick={() => retry()}>
            {unsent.action}
          </button>
        </p>
      )}
      <form action={(form) => void sendMessage(String(form.get('text')))}>
        <input name="text" aria-label="Message" />
        <button type="submit">Send</button>
      </form>
    </>
  )
}
