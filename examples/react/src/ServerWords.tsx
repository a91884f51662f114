import type { DisplayText } from '@countersign/core'
import { sourceOfWords } from '@countersign/example-page/words'
import { Segments } from './SafeText.js'

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
