import { COMPOSER_ID, focusComposer, hintOf } from '@countersign/client/ui'
import { useChatClient, useChatSelector } from '@countersign/react'
import { type KeyboardEvent, useState } from 'react'

/** The message input. Enter sends, Shift+Enter inserts a new line. */
export function Composer() {
  const [text, setText] = useState('')
  const { sendMessage, stop } = useChatClient()
  const isLoading = useChatSelector((chat) => chat.isLoading)
  const isEmpty = text.trim() === ''

  async function send() {
    if (isEmpty) return
    setText('')
    const { status } = await sendMessage(text)
    // Puts a refused text back, unless the user has started another.
    if (status === 'refused') setText((present) => (present === '' ? text : present))
  }

  function onStop() {
    stop()
    focusComposer()
  }

  function onKeyDown(event: KeyboardEvent) {
    // During IME composition, Enter belongs to the input method.
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    void send()
  }

  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault()
        void send()
      }}
    >
      <label className="visually-hidden" htmlFor={COMPOSER_ID}>
        Message
      </label>
      <textarea
        id={COMPOSER_ID}
        className="composer-input"
        rows={1}
        value={text}
        placeholder="What should be done?"
        aria-describedby="composer-hint"
        // biome-ignore lint/a11y/noAutofocus: writing is what this page is for
        autoFocus
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <div className="composer-buttons">
        {isLoading && (
          <button type="button" className="button stop" onClick={onStop}>
            Stop
          </button>
        )}
        {(!isLoading || !isEmpty) && (
          <button type="submit" className="button send" disabled={isEmpty}>
            {isLoading ? 'Queue' : 'Send'}
          </button>
        )}
      </div>
      <Hint isWriting={!isEmpty} />
    </form>
  )
}

function Hint({ isWriting }: { isWriting: boolean }) {
  const hint = useChatSelector((chat) => hintOf(chat, isWriting))
  return (
    <p className="composer-hint" id="composer-hint">
      {hint}
    </p>
  )
}
