import type { DemoTools } from '@countersign/example-page/tools'
import { useChat, useChatSelector } from '@countersign/react'
import { Question } from '@countersign/registry/react/question'
import { Turn } from './Turn.js'

/** The conversation. An unchanged turn is the same object and does not render again. */
export function Thread() {
  const { turns, isLoading } = useChat<DemoTools>()
  return (
    // The announcer speaks for it, because a streaming reply read out word by word cannot be followed.
    <div className="thread" role="log" aria-label="Conversation" aria-live="off" aria-busy={isLoading}>
      {turns.map((turn) => (
        <Turn key={turn.id} turn={turn} isLast={turn === turns.at(-1)} />
      ))}
      <Questions />
      <Thinking />
    </div>
  )
}

/** Interrupts that are no tool approvals. */
function Questions() {
  const questions = useChatSelector((chat) => chat.interrupts)
  return questions.map((question) => <Question key={question.id} question={question} />)
}

function Thinking() {
  const status = useChatSelector((chat) => chat.status)
  if (status !== 'submitted' && status !== 'executing') return null
  return (
    <p className="thinking">
      <span className="visually-hidden">Waiting for the answer</span>
    </p>
  )
}
