import type { Turn } from '@countersign/client'
import type { DemoTools } from '@countersign/example-page/tools'
import { mayAnswerAgain } from '@countersign/example-page/unsent'
import { useChatClient, useChatSelector } from '@countersign/solid'
import { Show } from 'solid-js'

export function TurnActions(props: { turn: Turn<DemoTools> }) {
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
