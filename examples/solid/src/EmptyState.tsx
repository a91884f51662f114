import { focusComposer } from '@countersign/client/ui'
import { examples } from '@countersign/example-page/examples'
import { useChatClient } from '@countersign/solid'
import { For } from 'solid-js'

/** Shown before the first message: what this is, and example requests. */
export function EmptyState() {
  const client = useChatClient()
  const ask = (example: string) => {
    focusComposer()
    void client().sendMessage(example)
  }
  return (
    <section class="empty">
      <h2 class="empty-title">Ask. Read. Sign.</h2>
      <p class="empty-text">
        The assistant works on real files in a folder of its own. It can read them freely. Before it writes,
        moves, deletes, mails or pays anything, you see exactly what will happen, and approve or deny it.
      </p>
      <ul class="examples" aria-label="Examples">
        <For each={examples}>
          {(example) => (
            <li>
              <button type="button" class="example" onClick={() => ask(example)}>
                {example}
              </button>
            </li>
          )}
        </For>
      </ul>
      <p class="empty-note">
        Replies come from a small planner with a fixed set of requests, not from a language model.
      </p>
    </section>
  )
}
