import type { MessagePart, UIMessage } from '@countersign/core'
import type { DemoTools } from '@countersign/example-page/tools'
import { mayAnswerAgain } from '@countersign/example-page/unsent'
import { useChatClient, useChatSelector, useMessage } from '@countersign/react'
import { memo } from 'react'
import { Prose } from './Prose.js'
import { ToolCard } from './ToolCard.js'

/** One message, subscribed by itself: while an answer streams, no other message renders. */
export const Message = memo(function Message({ id, isLast }: { id: string; isLast: boolean }) {
  const message = useMessage<DemoTools>(id)
  if (!message) return null
  return (
    <article className="message" data-role={message.role}>
      <h2 className="visually-hidden">{message.role === 'user' ? 'You' : 'Assistant'}</h2>
      {message.parts.map((part, index) => (
        <Part key={part.type === 'tool-call' ? part.id : index} part={part} role={message.role} />
      ))}
      {isLast && message.role === 'assistant' && <MessageActions message={message} />}
    </article>
  )
})

function Part({ part, role }: { part: MessagePart<DemoTools>; role: UIMessage['role'] }) {
  switch (part.type) {
    case 'text':
      return role === 'user' ? <p className="user-text">{part.text}</p> : <Prose text={part.text} />
    case 'tool-call':
      return <ToolCard part={part} />
    case 'reasoning':
      return (
        <details className="reasoning">
          <summary>Thoughts</summary>
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

function MessageActions({ message }: { message: UIMessage<DemoTools> }) {
  const { regenerate } = useChatClient()
  const isFree = useChatSelector(mayAnswerAgain)
  const hasText = message.parts.some((part) => part.type === 'text')
  if (!isFree || !hasText) return null
  return (
    <p className="message-actions">
      <button type="button" className="button link" onClick={() => void regenerate()}>
        Answer again
      </button>
    </p>
  )
}
