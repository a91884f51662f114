import type { ApprovalChoice, ApprovalView } from '@countersign/client'
import { type Answer, heldWords } from '@countersign/client/ui'
import { Show } from 'solid-js'
import { Mandates } from './Mandates.js'

interface ApprovalChoicesProps {
  view: ApprovalView
  onAnswer: (given: Answer) => void
  onEdit: () => void
  onDeny: () => void
}

export function ApprovalChoices(props: ApprovalChoicesProps) {
  const choice = (option: ApprovalChoice['option']) => props.view.choices.find((one) => one.option === option)
  const edit = () => (props.view.edit.status === 'offered' ? props.view.edit : undefined)
  const isHeld = () => props.view.hidden > 0
  const noteId = () => `${props.view.id}-note`
  const describedBy = () => (isHeld() ? noteId() : undefined)
  return (
    <>
      <fieldset class="approval-choices">
        <legend class="visually-hidden">Your answer</legend>
        <Show when={choice('once')}>
          <button
            type="button"
            class="button approve"
            disabled={choice('once')?.disabled}
            aria-describedby={describedBy()}
            onClick={() => props.onAnswer({ approved: true, scope: 'once' })}
          >
            Approve once
          </button>
        </Show>
        <Show when={edit()}>
          <button
            type="button"
            class="button"
            disabled={edit()?.disabled}
            aria-describedby={describedBy()}
            onClick={() => props.onEdit()}
          >
            Edit…
          </button>
        </Show>
        <Show when={choice('session')}>
          <button
            type="button"
            class="button"
            disabled={choice('session')?.disabled}
            aria-describedby={describedBy()}
            onClick={() => props.onAnswer({ approved: true, scope: 'session' })}
          >
            Always (this session)
          </button>
        </Show>
        <Show when={choice('deny')}>
          <button type="button" class="button deny" onClick={() => props.onDeny()}>
            Deny…
          </button>
        </Show>
      </fieldset>
      <Mandates choices={props.view.mandates} onAnswer={(response) => props.onAnswer(response)} />
      <Show when={isHeld()}>
        <p class="approval-note" id={noteId()}>
          {heldWords(props.view.hidden)}
        </p>
      </Show>
    </>
  )
}
