import { focusComposer, noticeOf } from '@countersign/client/ui'
import { useChatClient, useChatSelector } from '@countersign/solid'
import { Show } from 'solid-js'

/** Explains a failed request and offers a retry, or says that the page reconnects. The conversation before it is kept. */
export function ErrorNotice() {
  const client = useChatClient()
  const notice = useChatSelector(noticeOf)
  const retry = () => {
    focusComposer()
    void client().retry()
  }
  return (
    <Show when={notice()}>
      {(notice) => (
        <div class="error-notice" role={notice().isFailure ? 'alert' : 'status'}>
          <p class="error-title">{notice().title}</p>
          <p class="error-message">{notice().text}</p>
          <Show when={notice().isFailure}>
            <button type="button" class="button" onClick={retry}>
              Retry
            </button>
          </Show>
        </div>
      )}
    </Show>
  )
}
