import type { DemoTools } from '@countersign/example-page/tools'
import { useChat, useChatSelector } from '@countersign/react'
import { Question } from './Question.js'
import { Turn } from './Turn.js'

/** The conversation. A turn in which nothing changed is the same object, and does not render again. */
export function Thread() {
  const { turns, isLoading } = useChat<DemoTools>()
  return (
    // The announcer speaks for it: read out word by word, a streaming answer cannot be followed.
    <div className="thread" role="log" aria-label="Conversation" aria-live="off" aria-busy={isLoading}>
      {turns.map((turn) => (
        <Turn key={turn.id} turn={turn} isLast={turn === turns.at(-1)} />
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
