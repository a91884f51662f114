import type { ApprovalResponse, MandateChoice } from '@countersign/client'
import { mandateLimits } from '@countersign/example-page/grant-words'
import { Segments } from './SafeText.js'

interface MandateChoicesProps {
  choices: readonly MandateChoice[]
  isSending?: boolean
  onAnswer: (response: ApprovalResponse) => void
}

/** Standing approvals and denials to choose instead of an answer to this call alone. */
export function MandateChoices({ choices, isSending = false, onAnswer }: MandateChoicesProps) {
  if (choices.length === 0) return null
  return (
    <ul className="mandates" aria-label="Answers for more than this call">
      {choices.map(({ mandate, label, disabled, response }) => (
        <li className="mandate approval-choices" key={mandate.id}>
          <button
            type="button"
            className={mandate.decide === 'deny' ? 'button deny' : 'button'}
            disabled={disabled || isSending}
            onClick={() => onAnswer(response)}
          >
            <Segments shown={label} />
          </button>
          <span className="mandate-limits">{mandateLimits(mandate)}</span>
        </li>
      ))}
    </ul>
  )
}
