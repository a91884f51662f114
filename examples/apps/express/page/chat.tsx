import { approvalView, nextStep, type Turn } from '@countersign/client'
import { serverThreads } from '@countersign/client/server-threads'
import { queuedText, unsentIn } from '@countersign/client/ui'
import { webStorage } from '@countersign/client/web-storage'
import { useChat } from '@countersign/react'
import { useState } from 'react'

/** Each step of a reply has its own text. Of a call it says why its answer was refused or did not arrive. */
const textOf = (parts: Turn['parts']) =>
  parts
    .flatMap((part) => {
      if (part.type === 'text') return part.text
      return (part.type === 'tool-call' && nextStep(part)?.message) || []
    })
    .join('\n')

export function Chat({ user, threadId }: { user: string; threadId: string }) {
  // What is not sent yet is kept in this browser, separately for each user.
  const [threads] = useState(() =>
    serverThreads('/api/chat', { local: webStorage({ prefix: `unsent:${user}:` }) }),
  )
  const chat = useChat({ ...threads, threadId })
  const { turns, pendingApprovals, queue, status, error } = chat
  const { sendMessage, retry, addToolApprovalResponse } = chat
  const unsent = unsentIn(chat)
  const questions = pendingApprovals.flatMap((call) => approvalView(call) ?? [])
  return (
    <>
      {turns.length === 0 && <p>No messages yet</p>}
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
