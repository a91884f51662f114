import type { ApprovalResponse, ApprovalView } from '@countersign/client'
import { heldWords } from '@countersign/client/ui'
import { Mandates } from './mandates'

const NOTE_ID = 'dialog-hidden'

const classes = { deny: 'button deny', once: 'button approve', session: 'button' } as const

interface DialogChoicesProps {
  view: ApprovalView
  isSending: boolean
  onAnswer: (response: ApprovalResponse) => void
}

/** The choices that the server offers, and no others. */
export function DialogChoices({ view, isSending, onAnswer }: DialogChoicesProps) {
  const { hidden } = view
  return (
    <>
      <fieldset className="approval-choices" aria-describedby={hidden > 0 ? NOTE_ID : undefined}>
        <legend className="visually-hidden">Your answer</legend>
        {view.choices.map(({ option, label, disabled, response }) => (
          <button
            key={option}
            type="button"
            className={classes[option]}
            disabled={disabled || isSending}
            onClick={() => onAnswer(response)}
          >
            {label}
          </button>
        ))}
      </fieldset>
      <Mandates choices={view.mandates} isSending={isSending} onAnswer={onAnswer} />
      {hidden > 0 && (
        <p className="approval-note" id={NOTE_ID}>
          {heldWords(hidden)}
        </p>
      )}
    </>
  )
}
