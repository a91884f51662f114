import type { Turn as ShownTurn } from '@countersign/client'
import type { MessagePart } from '@countersign/core'
import type { DemoTools } from '@countersign/example-page/tools'
import { mayAnswerAgain } from '@countersign/example-page/unsent'
import { useChatClient, useChatSelector } from '@countersign/react'
import { memo } from 'react'
import { Prose } from './Prose.js'
import { ToolCard } from './ToolCard.js'

interface TurnProps {
  turn: ShownTurn<DemoTools>
  isLast: boolean
}

/** A user message, or a reply with all of its steps. While a reply streams, no other turn renders. */
export const Turn = memo(function Turn({ turn, isLast }: TurnProps) {
  return (
    <article className="turn" data-role={turn.role}>
      <h2 className="visually-hidden">{turn.role === 'user' ? 'You' : 'Assistant'}</h2>
      {turn.parts.map((part, index) => (
        // Includes the index, because a server may reuse an id, but keys must be unique.
        <Part key={part.type === 'tool-call' ? `${index} ${part.id}` : index} part={part} role={turn.role} />
      ))}
      {isLast && turn.role === 'assistant' && <TurnActions turn={turn} />}
    </article>
  )
})

function Part({ part, role }: { part: MessagePart<DemoTools>; role: ShownTurn['role'] }) {
  switch (part.type) {
    case 'text':
      return role === 'user' ? <p className="user-text">{part.text}</p> : <Prose text={part.text} />
    case 'tool-call':
      return <ToolCard part={part} />
    case 'reasoning':
      return (
        <details className="reasoning">
          <summary>Reasoning</summary>
          <Prose text={part.text} />
        </details>
      )
    case 'source':
      return <p className="source">{part.title ?? part.url ?? part.id}</p>
    case 'file':
      return <p className="source">A file ({part.media})</p>
    case 'data':
      return <pre className="code-block">{JSON.stringify(part.data, null, 2)}</pre>
    case 'tool-result':
      // Shown in the card of its call.
      return null
    default:
      return part satisfies never
  }
}

function TurnActions({ turn }: { turn: ShownTurn<DemoTools> }) {
  const { regenerate } = useChatClient()
  const isFree = useChatSelector(mayAnswerAgain)
  const hasText = turn.parts.some((part) => part.type === 'text')
  if (!isFree || !hasText) return null
  return (
    <p className="turn-actions">
      <button type="button" className="button link" onClick={() => void regenerate({ messageId: turn.id })}>
        Regenerate
      </button>
    </p>
  )
}
