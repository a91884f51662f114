import { focusComposer } from '@countersign/example-page/focus'
import { errorTitle } from '@countersign/example-page/words'
import { useChatClient, useChatSelector } from '@countersign/react'

/** Explains a failed request and offers a retry. The conversation before it is kept. */
export function ErrorNotice() {
  const error = useChatSelector((chat) => chat.error)
  const isLoading = useChatSelector((chat) => chat.isLoading)
  const { retry } = useChatClient()
  if (!error || isLoading) return null
  return (
    <div className="error-notice" role="alert">
      <p className="error-title">{errorTitle(error.code)}</p>
      <p className="error-message">{error.message}</p>
      <button
        type="button"
        className="button"
        onClick={() => {
          focusComposer()
          void retry()
        }}
      >
        Retry
      </button>
    </div>
  )
}
