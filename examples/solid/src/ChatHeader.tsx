import { startAnew } from '@countersign/example-page/grants'

export function ChatHeader(props: { isEmpty: boolean }) {
  return (
    <header class="chat-header">
      <h1 class="wordmark">Countersign</h1>
      <p class="chat-subject">Nothing changes without your approval.</p>
      <button type="button" class="button new-chat" disabled={props.isEmpty} onClick={startAnew}>
        New chat
      </button>
    </header>
  )
}
