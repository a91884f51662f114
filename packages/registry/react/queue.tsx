'use client'

import { queuedText } from '@countersign/client/ui'
import { useChatClient, useChatSelector } from '@countersign/react'

/** Messages queued while a reply streams. */
export function Queue() {
  const queue = useChatSelector((chat) => chat.queue)
  const { cancelQueued } = useChatClient()
  if (queue.length === 0) return null
  return (
    <section className="queue" aria-label="Waiting messages">
      <ul className="queue-list">
        {queue.map((queued) => {
          const text = queuedText(queued)
          return (
            <li key={queued.id} className="queue-item">
              <span className="queue-label">Next</span>
              <span className="queue-text">{text}</span>
              <button
                type="button"
                className="button link"
                aria-label={`Cancel: ${text}`}
                onClick={({ detail }) => detail < 2 && cancelQueued(queued.id)}
              >
                Cancel
              </button>
            </li>
          )
        })}
      </ul>
    </section>
  )
}
