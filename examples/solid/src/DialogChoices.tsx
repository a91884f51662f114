import type { ApprovalResponse, ApprovalView } from '@countersign/client'
import { choiceClass } from '@countersign/example-page/dialog'
import { heldWords } from '@countersign/example-page/words'
import { Index, Show } from 'solid-js'
import { MandateChoices } from './MandateChoices.js'

const NOTE_ID = 'dialog-hidden'

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
              class={choiceClass(choice().option)}
              disabled={choice().disabled || props.isSending}
              onClick={() => props.onAnswer(choice().response)}
            >
              {choice().label}
            </button>
          )}
        </Index>
      </fieldset>
      <MandateChoices
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
