import { sourceOfWords } from '@countersign/client/ui'
import type { DisplayText } from '@countersign/core'
import { Segments } from './safe-text'

/** The server's text may come from others, so it is set apart from the page's own. */
export function ServerWords({ message, isEditing = false }: { message: DisplayText; isEditing?: boolean }) {
  return (
    <blockquote className="server-words">
      <span className="server-words-source">{sourceOfWords(isEditing)}</span>
      <span>
        <Segments shown={message} />
        {message.hidden > 0 && '…'}
      </span>
    </blockquote>
  )
}
