import type { Turn as ShownTurn } from '@countersign/client'
import type { MessagePart, ToolCallPart } from '@countersign/core'
import { edits } from '@countersign/example-page/chat'
import type { DemoTools } from '@countersign/example-page/tools'
import { ToolCard } from '@countersign/registry/react/tool-card'
import { TurnActions } from '@countersign/registry/react/turn-actions'
import { memo } from 'react'
import { FileListing } from './FileListing.js'
import { Prose } from './Prose.js'

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
      <TurnActions turn={turn} isLast={isLast} />
    </article>
  )
})

function Part({ part, role }: { part: MessagePart<DemoTools>; role: ShownTurn['role'] }) {
  switch (part.type) {
    case 'text':
      return role === 'user' ? <p className="user-text">{part.text}</p> : <Prose text={part.text} />
    case 'tool-call':
      return <ToolCard part={part} edits={edits} result={resultOf(part)} />
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

/** A list of files is shown as a table. */
function resultOf(part: ToolCallPart<DemoTools>) {
  return part.name === 'list_files' && part.output ? <FileListing listing={part.output} /> : undefined
}
