import type { ApprovalResponse, MandateChoice } from '@countersign/client'

interface MandatesProps {
  choices: readonly MandateChoice[]
  onAnswer: (response: ApprovalResponse) => void
}

/** Standing approvals and denials, to choose instead of an answer to this call alone. */
export function Mandates({ choices, onAnswer }: MandatesProps) {
  if (choices.length === 0) return null
  return (
    <ul aria-label="Answers for more than this call">
      {choices.map(({ mandate, label, disabled, response }) => (
        <li key={mandate.id}>
          <button type="button" disabled={disabled} onClick={() => onAnswer(response)}>
            <bdi>{label.text}</bdi>
          </button>
        </li>
      ))}
    </ul>
  )
}
