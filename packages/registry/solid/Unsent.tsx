import { focusComposer, unsentIn } from '@countersign/client/ui'
import { useChatClient, useChatSelector } from '@countersign/solid'
import { Show } from 'solid-js'

/** Answers that were not sent because of a reload or a stop. They are sent only when the user asks for it. */
export function Unsent() {
  const client = useChatClient()
  const unsent = useChatSelector(unsentIn)
  const send = () => {
    focusComposer()
    void client().retry()
  }
  return (
    <Show when={unsent()}>
      {(shown) => (
        <div class="unsent-notice" role="status">
          <div class="unsent-words">
            <p class="unsent-title">{shown().title}</p>
            <p>{shown().text}</p>
          </div>
          <button type="button" class="button" onClick={send}>
            {shown().action}
          </button>
        </div>
      )}
    </Show>
  )
}
