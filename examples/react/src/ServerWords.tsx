import type { DisplayText } from '@countersign/core'
import { Segments } from './SafeText.js'

/** The server's text may itself be written by others: it is set apart from what this page says. */
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
