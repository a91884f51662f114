import type { Turn } from '@countersign/client'
import { mayAnswerAgain, textToCopy } from '@countersign/client/ui'
import { useChatClient, useChatSelector } from '@countersign/solid'
import { Show } from 'solid-js'
import { CopyButton } from './CopyButton.js'

interface TurnActionsProps {
  turn: Pick<Turn, 'id' | 'role' | 'parts'>
  isLast: boolean
}

/** A button that copies a turn once it has ended, and one that asks for the last reply once more, once nothing would be lost by it. */
export function TurnActions(props: TurnActionsProps) {
  const client = useChatClient()
  const isFree = useChatSelector(mayAnswerAgain)
  const isBusy = useChatSelector(({ isLoading }) => isLoading)
  const isLastReply = () => props.isLast && props.turn.role === 'assistant'
  const text = () => textToCopy(props.turn.parts)
  return (
    <Show when={text() !== '' && !(isBusy() && isLastReply())}>
      <p class="turn-actions">
        <CopyButton label="Copy message" text={text()} />
        <Show when={isFree() && isLastReply()}>
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
