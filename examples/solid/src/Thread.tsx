import type { DemoTools } from '@countersign/example-page/tools'
import { Question } from '@countersign/registry/solid/Question'
import { useChat } from '@countersign/solid'
import { For, Index, Show } from 'solid-js'
import { Turn } from './Turn.js'

/** The conversation. Turns grow in place: a delta puts a new turn object at the same index. */
export function Thread() {
  const chat = useChat<DemoTools>()
  return (
    // The announcer speaks for it, because a streaming reply read out word by word cannot be followed.
    <div class="thread" role="log" aria-label="Conversation" aria-live="off" aria-busy={chat.isLoading}>
      <Index each={chat.turns}>
        {(turn, index) => (
          // A different turn at the same index renders from scratch.
          <Show when={turn().id} keyed>
            <Turn turn={turn()} isLast={index === chat.turns.length - 1} />
          </Show>
        )}
      </Index>
      <For each={chat.interrupts}>{(question) => <Question question={question} />}</For>
      <Show when={chat.status === 'submitted' || chat.status === 'executing'}>
        <p class="thinking">
          <span class="visually-hidden">Waiting for the answer</span>
        </p>
      </Show>
    </div>
  )
}
