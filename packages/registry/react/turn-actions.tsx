'use client'

import type { Turn } from '@countersign/client'
import { mayAnswerAgain, textToCopy } from '@countersign/client/ui'
import { useChatClient, useChatSelector } from '@countersign/react'
import { CopyButton } from './copy-button'

interface TurnActionsProps {
  turn: Pick<Turn, 'id' | 'role' | 'parts'>
  isLast: boolean
}

/** A button that copies a turn once it has ended, and one that asks for the last reply once more, once nothing would be lost by it. */
export function TurnActions({ turn, isLast }: TurnActionsProps) {
  const { regenerate } = useChatClient()
  const isFree = useChatSelector(mayAnswerAgain)
  const isBusy = useChatSelector(({ isLoading }) => isLoading)
  const isLastReply = isLast && turn.role === 'assistant'
  const text = textToCopy(turn.parts)
  if (text === '' || (isBusy && isLastReply)) return null
  return (
    <p className="turn-actions">
      <CopyButton label="Copy message" text={text} />
      {isFree && isLastReply && (
        <button type="button" className="button link" onClick={() => void regenerate({ messageId: turn.id })}>
          Regenerate
        </button>
      )}
    </p>
  )
}
