import { queuedText } from '@countersign/client/ui'
import { useChat } from '@countersign/solid'
import { For, Show } from 'solid-js'

/** Messages queued while a reply streams. */
export function Queue() {
  const chat = useChat()
  return (
    <Show when={chat.queue.length > 0}>
      <section class="queue" aria-label="Waiting messages">
        <ul class="queue-list">
          <For each={chat.queue}>
            {(queued) => (
              <li class="queue-item">
                <span class="queue-label">Next</span>
                <span class="queue-text">{queuedText(queued)}</span>
                <button
                  type="button"
                  class="button link"
                  aria-label={`Cancel: ${queuedText(queued)}`}
                  onClick={({ detail }) => detail < 2 && chat.cancelQueued(queued.id)}
                >
                  Cancel
                </button>
              </li>
            )}
          </For>
        </ul>
      </section>
    </Show>
  )
}
