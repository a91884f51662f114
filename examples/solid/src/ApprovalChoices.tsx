import type { ToolCallApproval } from '@countersign/core'
import { Show } from 'solid-js'

interface ApprovalChoicesProps {
  approval: ToolCallApproval
  /** How many characters of the arguments are not shown. Until all are, nothing can be approved. */
  hidden: number
  onApprove: (scope: 'once' | 'session') => void
  onEdit: () => void
  onDeny: () => void
}

export function ApprovalChoices(props: ApprovalChoicesProps) {
  const offers = (option: ToolCallApproval['options'][number]) => props.approval.options.includes(option)
  const isHeld = () => props.hidden > 0
  const noteId = () => `${props.approval.id}-note`
  const describedBy = () => (isHeld() ? noteId() : undefined)
  return (
    <>
      <fieldset class="approval-choices">
        <legend class="visually-hidden">Your answer</legend>
        <Show when={offers('once')}>
          <button
            type="button"
            class="button approve"
            disabled={isHeld()}
            aria-describedby={describedBy()}
            onClick={() => props.onApprove('once')}
          >
            Approve once
          </button>
        </Show>
        <Show when={props.approval.allowEdits}>
          <button type="button" class="button" onClick={() => props.onEdit()}>
            Edit…
          </button>
        </Show>
        <Show when={offers('session')}>
          <button
            type="button"
            class="button"
            disabled={isHeld()}
            aria-describedby={describedBy()}
            onClick={() => props.onApprove('session')}
          >
            Always (this session)
          </button>
        </Show>
        <Show when={offers('deny')}>
          <button type="button" class="button deny" onClick={() => props.onDeny()}>
            Deny…
          </button>
        </Show>
      </fieldset>
      <Show when={isHeld()}>
        <p class="approval-note" id={noteId()}>
          {props.hidden.toLocaleString('en')} characters are not shown. Show all of them before you approve.
        </p>
      </Show>
    </>
  )
}
