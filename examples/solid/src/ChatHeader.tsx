import { addressOf } from '@countersign/example-page/address'
import { CHATS_ID, chats } from '@countersign/example-page/chats'
import { Show } from 'solid-js'

export function ChatHeader(props: { isEmpty: boolean }) {
  return (
    <header class="chat-header">
      <Show when={chats.isOffered}>
        <button type="button" class="button chats-button" popovertarget={CHATS_ID}>
          Chats
        </button>
      </Show>
      <h1 class="wordmark">Countersign</h1>
      <p class="chat-subject">Nothing changes without your approval.</p>
      <Show when={!props.isEmpty}>
        <a class="button new-chat" href={addressOf()}>
          New chat
        </a>
      </Show>
    </header>
  )
}
