import { helpFor } from '@countersign/client/ui'
import type { ToolCallPart } from '@countersign/core'
import { useChatClient } from '@countersign/react'

/** What happened to an answer that was refused or did not arrive, and what helps. Empty if all is well. */
export function Help({ part }: { part: ToolCallPart }) {
  const help = helpFor(useChatClient(), part)
  if (!help) return null
  const { message, action } = help
  return (
    <p className="tool-failure">
      {message}{' '}
      {action && (
        <button type="button" className="button link" onClick={action.run}>
          {action.label}
        </button>
      )}
    </p>
  )
}
