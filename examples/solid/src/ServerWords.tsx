import type { DisplayText } from '@countersign/core'
import { Segments } from './SafeText.js'

/** The server's text may come from others, so it is set apart from the page's own. */
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
