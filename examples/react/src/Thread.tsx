import { useChatSelector, useMessageIds } from '@countersign/react'
import { Message } from './Message.js'
import { Question } from './Question.js'

/** The conversation. It renders when messages come or go; each message renders by itself. */
export function Thread() {
  const ids = useMessageIds()
  const isLoading = useChatSelector((chat) => chat.isLoading)
  return (
    // The announcer speaks for it: read out word by word, a streaming answer cannot be followed.
    <div className="thread" role="log" aria-label="Conversation" aria-live="off" aria-busy={isLoading}>
      {ids.map((id) => (
        <Message key={id} id={id} isLast={id === ids.at(-1)} />
      ))}
      <Questions />
      <Thinking />
    </div>
  )
}

/** What the agent asks beside its calls. */
function Questions() {
  const questions = useChatSelector((chat) => chat.interrupts)
  return questions.map((question) => <Question key={question.id} question={question} />)
}

function Thinking() {
  const status = useChatSelector((chat) => chat.status)
  if (status !== 'submitted') return null
  return (
    <p className="thinking">
      <span className="visually-hidden">Waiting for the answer</span>
    </p>
  )
}
