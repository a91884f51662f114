import { useChatClient, useChatSelector } from '@countersign/react'
import { focusComposer } from './focus.js'
import { unsentIn } from './unsent.js'

/** Answers that a reload or a stop has kept from the server. Nothing goes out until the person says so. */
export function Unsent() {
  const unsent = useChatSelector(unsentIn)
  const { resume } = useChatClient()
  if (unsent === 'none') return null
  return (
    <div className="unsent-notice" role="status">
      <div className="unsent-words">
        <p className="unsent-title">
          {unsent === 'waiting' ? 'Your answer has not been sent' : 'Your answer may not have arrived'}
        </p>
        <p>
          {unsent === 'waiting'
            ? 'It is kept here, and nothing runs until you send it.'
            : 'The connection ended before the server confirmed it. Sending it again runs nothing twice.'}
        </p>
      </div>
      <button
        type="button"
        className="button"
        onClick={() => {
          focusComposer()
          void resume()
        }}
      >
        {unsent === 'waiting' ? 'Send it' : 'Send it again'}
      </button>
    </div>
  )
}
