import type { Turn } from '@countersign/client'
import { mayAnswerAgain } from '@countersign/client/ui'
import { useChatClient, useChatSelector } from '@countersign/solid'
import { Show } from 'solid-js'

/** A button that asks for a reply once more, once nothing would be lost by it. */
export function TurnActions(props: { turn: Pick<Turn, 'id' | 'parts'> }) {
  const client = useChatClient()
  const isFree = useChatSelector(mayAnswerAgain)
  const hasText = () => props.turn.parts.some((part) => part.type === 'text')
  return (
    <Show when={isFree() && hasText()}>
      <p class="turn-actions">
        <button
          type="button"
          class="button link"
          onClick={() => void client().regenerate({ messageId: props.turn.id })}
        >
          Regenerate
        </button>
      </p>
    </Show>
  )
}
