import { focusComposer } from '@countersign/example-page/focus'
import { useChatClient } from '@countersign/solid'

export function ChatHeader(props: { isEmpty: boolean }) {
  const client = useChatClient()
  const startAnew = () => {
    client().clear()
    focusComposer()
  }
  return (
    <header class="chat-header">
      <h1 class="wordmark">Countersign</h1>
      <p class="chat-subject">Nothing is changed without your yes.</p>
      <button type="button" class="button new-chat" disabled={props.isEmpty} onClick={startAnew}>
        New chat
      </button>
    </header>
  )
}
