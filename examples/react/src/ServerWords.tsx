import type { DisplayText } from '@countersign/core'
import { Segments } from './SafeText.js'

/** The server's text may come from others, so it is set apart from the page's own. */
export function ServerWords({ message }: { message: DisplayText }) {
  return (
    <blockquote className="server-words">
      <span className="server-words-source">The server says</span>
      <span>
        <Segments shown={message} />
        {message.hidden > 0 && '…'}
      </span>
    </blockquote>
  )
}
