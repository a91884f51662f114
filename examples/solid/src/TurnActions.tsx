import type { UIMessage } from '@countersign/core'
import type { DemoTools } from '@countersign/example-page/tools'
import { mayAnswerAgain } from '@countersign/example-page/unsent'
import { useChatClient, useChatSelector } from '@countersign/solid'
import { Show } from 'solid-js'

export function MessageActions(props: { message: UIMessage<DemoTools> }) {
  const client = useChatClient()
  const isFree = useChatSelector(mayAnswerAgain)
  const hasText = () => props.message.parts.some((part) => part.type === 'text')
  return (
    <Show when={isFree() && hasText()}>
      <p class="message-actions">
        <button type="button" class="button link" onClick={() => void client().regenerate()}>
          Answer again
        </button>
      </p>
    </Show>
  )
}
