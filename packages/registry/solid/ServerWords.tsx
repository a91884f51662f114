import { sourceOfWords } from '@countersign/client/ui'
import type { DisplayText } from '@countersign/core'
import { Segments } from './SafeText.js'

/** The server's text may come from others, so it is set apart from the page's own. */
export function ServerWords(props: { message: DisplayText; isEditing?: boolean }) {
  return (
    <blockquote class="server-words">
      <span class="server-words-source">{sourceOfWords(props.isEditing ?? false)}</span>
      <span>
        <Segments shown={props.message} />
        {props.message.hidden > 0 && '…'}
      </span>
    </blockquote>
  )
}
