import { focusComposer } from '@countersign/example-page/focus'
import { errorTitle } from '@countersign/example-page/words'
import { useChat } from '@countersign/solid'
import { Show } from 'solid-js'

/** Explains a failed request and offers a retry. The conversation before it is kept. */
export function ErrorNotice() {
  const chat = useChat()
  const retry = () => {
    focusComposer()
    void chat.retry()
  }
  return (
    <Show when={!chat.isLoading && chat.error}>
      {(error) => (
        <div class="error-notice" role="alert">
          <p class="error-title">{errorTitle(error().code)}</p>
          <p class="error-message">{error().message}</p>
          <button type="button" class="button" onClick={retry}>
            Retry
          </button>
        </div>
      )}
    </Show>
  )
}
