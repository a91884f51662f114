'use client'

import type { Turn } from '@countersign/client'
import { mayAnswerAgain } from '@countersign/client/ui'
import { useChatClient, useChatSelector } from '@countersign/react'

/** A button that asks for a reply once more, once nothing would be lost by it. */
export function TurnActions({ turn }: { turn: Pick<Turn, 'id' | 'parts'> }) {
  const { regenerate } = useChatClient()
  const isFree = useChatSelector(mayAnswerAgain)
  const hasText = turn.parts.some((part) => part.type === 'text')
  if (!isFree || !hasText) return null
  return (
    <p className="turn-actions">
      <button type="button" className="button link" onClick={() => void regenerate({ messageId: turn.id })}>
        Regenerate
      </button>
    </p>
  )
}
