'use client'

import type { ApprovalResponse, MandateChoice } from '@countersign/client'
import { mandateLimits, replayAnswer, replayQuestion } from '@countersign/client/ui'
import { useChatClient } from '@countersign/react'
import { useState } from 'react'
import { Segments } from './safe-text'

interface MandatesProps {
  choices: readonly MandateChoice[]
  onAnswer: (response: ApprovalResponse) => void
}

/** Standing approvals and denials to choose instead of an answer to this call alone. */
export function Mandates({ choices, onAnswer }: MandatesProps) {
  const client = useChatClient()
  const [replays, setReplays] = useState<Readonly<Record<string, string>>>({})
  const replay = async (choice: MandateChoice) => {
    const words = await replayAnswer(client, choice)
    setReplays((known) => ({ ...known, [choice.mandate.id]: words }))
  }
  if (choices.length === 0) return null
  return (
    <ul className="mandates" aria-label="Answers for more than this call">
      {choices.map((choice) => {
        const { mandate, label, disabled, response } = choice
        return (
          <li className="mandate approval-choices" key={mandate.id}>
            <button
              type="button"
              className={mandate.decide === 'deny' ? 'button deny' : 'button'}
              disabled={disabled}
              onClick={() => onAnswer(response)}
            >
              <Segments shown={label} />
            </button>
            <span className="mandate-limits">{mandateLimits(mandate)}</span>
            <button type="button" className="button link" onClick={() => void replay(choice)}>
              {replayQuestion(choice)}
            </button>
            <span className="mandate-replay" role="status">
              {replays[mandate.id]}
            </span>
          </li>
        )
      })}
    </ul>
  )
}
