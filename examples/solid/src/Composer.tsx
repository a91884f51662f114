import { COMPOSER_ID, focusComposer, hintOf } from '@countersign/client/ui'
import { takeFocus } from '@countersign/registry/solid/takeFocus'
import { useChat, useChatSelector } from '@countersign/solid'
import { createSignal, Show } from 'solid-js'

/** The message input. Enter sends, Shift+Enter inserts a new line. */
export function Composer() {
  const chat = useChat()
  const [text, setText] = createSignal('')
  const isEmpty = () => text().trim() === ''
  const hint = useChatSelector((snapshot) => hintOf(snapshot, !isEmpty()))

  async function send() {
    const sent = text()
    if (isEmpty()) return
    setText('')
    const { status } = await chat.sendMessage(sent)
    // Puts a refused text back, unless the user has started another.
    if (status === 'refused') setText((present) => (present === '' ? sent : present))
  }

  function onStop() {
    chat.stop()
    focusComposer()
  }

  function onKeyDown(event: KeyboardEvent) {
    // During IME composition, Enter belongs to the input method.
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
    event.preventDefault()
    void send()
  }

  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault()
        void send()
      }}
    >
      <label class="visually-hidden" for={COMPOSER_ID}>
        Message
      </label>
      <textarea
        id={COMPOSER_ID}
        class="composer-input"
        rows={1}
        value={text()}
        placeholder="What should be done?"
        aria-describedby="composer-hint"
        ref={takeFocus}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <div class="composer-buttons">
        <Show when={chat.isLoading}>
          <button type="button" class="button stop" onClick={onStop}>
            Stop
          </button>
        </Show>
        <Show when={!chat.isLoading || !isEmpty()}>
          <button type="submit" class="button send" disabled={isEmpty()}>
            {chat.isLoading ? 'Queue' : 'Send'}
          </button>
        </Show>
      </div>
      <p class="composer-hint" id="composer-hint">
        {hint()}
      </p>
    </form>
  )
}
