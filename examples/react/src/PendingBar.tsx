import { focusCard, nextRequest } from '@countersign/example-page/focus'
import { usePendingApprovals } from '@countersign/react'

/** How many requests wait, and the way to each of them. */
export function PendingBar() {
  const pending = usePendingApprovals()
  if (pending.length === 0) return null
  return (
    <div className="pending-bar">
      <p className="pending-count">
        {pending.length === 1 ? 'One request waits for you' : `${pending.length} requests wait for you`}
      </p>
      <button
        type="button"
        className="button"
        // The focus stays in the card that it is in, so that "next" has a place to count from.
        onMouseDown={(event) => event.preventDefault()}
        onClick={() => {
          const next = nextRequest(pending)
          if (next) focusCard(next)
        }}
      >
        {pending.length === 1 ? 'Show it' : 'Show next'}
      </button>
    </div>
  )
}
