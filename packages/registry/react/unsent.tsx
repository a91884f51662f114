'use client'

import { focusComposer, unsentIn } from '@countersign/client/ui'
import { useChatClient, useChatSelector } from '@countersign/react'

/** Answers that were not sent because of a reload or a stop. They are sent only when the user asks for it. */
export function Unsent() {
  const unsent = useChatSelector(unsentIn)
  const { retry } = useChatClient()
  if (unsent === undefined) return null
  const { title, text, action } = unsent
  return (
    <div className="unsent-notice" role="status">
      <div className="unsent-words">
        <p className="unsent-title">{title}</p>
        <p>{text}</p>
      </div>
      <button
        type="button"
        className="button"
        onClick={() => {
          focusComposer()
          void retry()
        }}
      >
        {action}
      </button>
    </div>
  )
}
