import type { Turn } from '@countersign/client'
import { mayAnswerAgain, textToCopy } from '@countersign/client/ui'
import { useChatClient, useChatSelector } from '@countersign/solid'
import { Show } from 'solid-js'
import { CopyButton } from './CopyButton.js'

interface TurnActionsProps {
  turn: Pick<Turn, 'id' | 'role' | 'parts'>
  isLast: boolean
}

/** A button that copies a turn, and one that asks for the last reply once more, once nothing would be lost by it. */
export function TurnActions(props: TurnActionsProps) {
  const client = useChatClient()
  const isFree = useChatSelector(mayAnswerAgain)
  const text = () => textToCopy(props.turn.parts)
  const mayAsk = () => isFree() && props.isLast && props.turn.role === 'assistant'
  return (
    <Show when={text() !== ''}>
      <p class="turn-actions">
        <CopyButton label="Copy message" text={text()} />
        <Show when={mayAsk()}>
          <button
            type="button"
            class="button link"
            onClick={() => void client().regenerate({ messageId: props.turn.id })}
          >
            Regenerate
          </button>
        </Show>
      </p>
    </Show>
  )
}
