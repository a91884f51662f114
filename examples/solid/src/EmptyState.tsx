import { examples } from '@countersign/example-page/examples'
import { focusComposer } from '@countersign/example-page/focus'
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
        The assistant works on real files in a folder of its own. Looking is free; before anything is written,
        moved, deleted or mailed, you see exactly what would happen and decide.
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
        Answers come from a small planner that knows a fixed set of requests. It is not a language model.
      </p>
    </section>
  )
}
