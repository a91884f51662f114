import { useChatSelector, useMessageIds } from '@countersign/solid'
import { For, Show } from 'solid-js'
import { Message } from './Message.js'
import { Question } from './Question.js'

/** The conversation. The list changes when messages come or go; each message follows itself. */
export function Thread() {
  const ids = useMessageIds()
  const status = useChatSelector((chat) => chat.status)
  const questions = useChatSelector((chat) => chat.interrupts)
  const isLoading = useChatSelector((chat) => chat.isLoading)
  return (
    // The announcer speaks for it: read out word by word, a streaming answer cannot be followed.
    <div class="thread" role="log" aria-label="Conversation" aria-live="off" aria-busy={isLoading()}>
      <For each={ids()}>{(id) => <Message id={id} isLast={id === ids().at(-1)} />}</For>
      <For each={questions()}>{(question) => <Question question={question} />}</For>
      <Show when={status() === 'submitted'}>
        <p class="thinking">
          <span class="visually-hidden">Waiting for the answer</span>
        </p>
      </Show>
    </div>
  )
}
