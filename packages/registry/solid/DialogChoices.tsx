import type { ApprovalResponse, ApprovalView } from '@countersign/client'
import { heldWords } from '@countersign/client/ui'
import { Index, Show } from 'solid-js'
import { Mandates } from './Mandates.js'

const NOTE_ID = 'dialog-hidden'

const classes = { deny: 'button deny', once: 'button approve', session: 'button' } as const

interface DialogChoicesProps {
  view: ApprovalView
  isSending: boolean
  onAnswer: (response: ApprovalResponse) => void
}

/** The choices that the server offers, and no others. */
export function DialogChoices(props: DialogChoicesProps) {
  const hidden = () => props.view.hidden
  return (
    <>
      <fieldset class="approval-choices" aria-describedby={hidden() > 0 ? NOTE_ID : undefined}>
        <legend class="visually-hidden">Your answer</legend>
        <Index each={props.view.choices}>
          {(choice) => (
            <button
              type="button"
              class={classes[choice().option]}
              disabled={choice().disabled || props.isSending}
              onClick={() => props.onAnswer(choice().response)}
            >
              {choice().label}
            </button>
          )}
        </Index>
      </fieldset>
      <Mandates
        choices={props.view.mandates}
        isSending={props.isSending}
        onAnswer={(response) => props.onAnswer(response)}
      />
      <Show when={hidden() > 0}>
        <p class="approval-note" id={NOTE_ID}>
          {heldWords(hidden())}
        </p>
      </Show>
    </>
  )
}
