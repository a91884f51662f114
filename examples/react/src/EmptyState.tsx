import { focusComposer } from '@countersign/client/ui'
import { examples } from '@countersign/example-page/examples'
import { useChatClient } from '@countersign/react'

/** Shown before the first message: what this is, and example requests. */
export function EmptyState() {
  const { sendMessage } = useChatClient()
  return (
    <section className="empty">
      <h2 className="empty-title">Ask. Read. Sign.</h2>
      <p className="empty-text">
        The assistant works on real files in a folder of its own. It can read them freely. Before it writes,
        moves, deletes, mails or pays anything, you see exactly what will happen, and approve or deny it.
      </p>
      <ul className="examples" aria-label="Examples">
        {examples.map((example) => (
          <li key={example}>
            <button
              type="button"
              className="example"
              onClick={() => {
                focusComposer()
                void sendMessage(example)
              }}
            >
              {example}
            </button>
          </li>
        ))}
      </ul>
      <p className="empty-note">
        Replies come from a small planner with a fixed set of requests, not from a language model.
      </p>
    </section>
  )
}
