import type { DisplayText } from '@countersign/core'
import { Segments } from './SafeText.js'

/** The server's text may itself be written by others: it is set apart from what this page says. */
export function ServerWords(props: { message: DisplayText }) {
  return (
    <blockquote class="server-words">
      <span class="server-words-source">The server says</span>
      <span>
        <Segments shown={props.message} />
        {props.message.hidden > 0 && '…'}
      </span>
    </blockquote>
  )
}
