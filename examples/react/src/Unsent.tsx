import { focusComposer } from '@countersign/example-page/focus'
import { unsentIn } from '@countersign/example-page/unsent'
import { unsentWords } from '@countersign/example-page/words'
import { useChatClient, useChatSelector } from '@countersign/react'

/** Answers that were not sent because of a reload or a stop. They are sent only when the user asks for it. */
export function Unsent() {
  const unsent = useChatSelector(unsentIn)
  const { retry } = useChatClient()
  if (unsent === 'none') return null
  const { title, text, action } = unsentWords(unsent)
  return (
    <div className="unsent-notice" role="status">
      <div className="unsent-words">
        <p className="unsent-title">{title}</p>
        <p>{text}</p>
      </div>
      <button
        type="button"
        className="button"
        onClick={() => {
          focusComposer()
          void retry()
        }}
      >
        {action}
      </button>
    </div>
  )
}
