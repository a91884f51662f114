import type { ApprovalResponse, ApprovalView } from '@countersign/client'
import { choiceClass } from '@countersign/example-page/dialog'

const NOTE_ID = 'dialog-hidden'

interface DialogChoicesProps {
  view: ApprovalView
  isSending: boolean
  onAnswer: (response: ApprovalResponse) => void
}

/** What the server lets the person answer, and nothing else. */
export function DialogChoices({ view, isSending, onAnswer }: DialogChoicesProps) {
  const hidden = view.arguments?.text.hidden ?? 0
  return (
    <>
      <fieldset className="approval-choices" aria-describedby={hidden > 0 ? NOTE_ID : undefined}>
        <legend className="visually-hidden">Your answer</legend>
        {view.choices.map(({ option, label, disabled, response }) => (
          <button
            key={option}
            type="button"
            className={choiceClass(option)}
            disabled={disabled || isSending}
            onClick={() => onAnswer(response)}
          >
            {label}
          </button>
        ))}
      </fieldset>
      {hidden > 0 && (
        <p className="approval-note" id={NOTE_ID}>
          {hidden.toLocaleString('en')} characters are not shown. Show all of them before you approve.
        </p>
      )}
    </>
  )
}
