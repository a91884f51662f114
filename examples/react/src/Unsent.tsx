import { focusComposer } from '@countersign/example-page/focus'
import { unsentIn } from '@countersign/example-page/unsent'
import { unsentWords } from '@countersign/example-page/words'
import { useChatClient, useChatSelector } from '@countersign/react'

/** Answers that a reload or a stop has kept from the server. Nothing goes out until the person says so. */
export function Unsent() {
  const unsent = useChatSelector(unsentIn)
  const { resume } = useChatClient()
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
          void resume()
        }}
      >
        {action}
      </button>
    </div>
  )
}
