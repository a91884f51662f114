import type { ListedThread } from '@countersign/client/thread-list'
import { addressOf } from '@countersign/example-page/address'
import {
  type ChatForm,
  chatLinkId,
  closeForm,
  isShown,
  openForm,
  submitDelete,
  submitTitle,
  titleOf,
} from '@countersign/example-page/chats'
import { takeFocus } from '@countersign/registry/solid/takeFocus'
import { Match, Show, Switch } from 'solid-js'

/** One conversation: its link, or the form that renames or deletes it. */
export function ChatRow(props: { thread: ListedThread; form: ChatForm | undefined }) {
  return (
    <Switch fallback={<ChatLink thread={props.thread} />}>
      <Match when={props.form === 'rename'}>
        <RenameForm thread={props.thread} />
      </Match>
      <Match when={props.form === 'delete'}>
        <DeleteForm thread={props.thread} />
      </Match>
    </Switch>
  )
}

function ChatLink(props: { thread: ListedThread }) {
  const title = () => titleOf(props.thread)
  return (
    <>
      <a
        id={chatLinkId(props.thread)}
        class="chats-link"
        href={addressOf(props.thread.threadId)}
        aria-current={isShown(props.thread) ? 'page' : undefined}
      >
        {title()}
        <Show when={props.thread.isRunning}>
          <span class="chats-running">(replying)</span>
        </Show>
      </a>
      <span class="chats-actions">
        <button
          type="button"
          class="button link"
          aria-label={`Rename ${title()}`}
          onClick={() => openForm(props.thread, 'rename')}
        >
          Rename
        </button>
        <button
          type="button"
          class="button link"
          aria-label={`Delete ${title()}`}
          onClick={() => openForm(props.thread, 'delete')}
        >
          Delete
        </button>
      </span>
    </>
  )
}

function RenameForm(props: { thread: ListedThread }) {
  return (
    <form class="chats-form" onSubmit={(event) => submitTitle(event, props.thread)}>
      <input
        class="field-input"
        name="title"
        aria-label="Title"
        value={titleOf(props.thread)}
        maxLength={1024}
        autocomplete="off"
        ref={takeFocus}
        onFocus={(event) => event.currentTarget.select()}
      />
      <button type="submit" class="button">
        Rename
      </button>
      <button type="button" class="button" onClick={closeForm}>
        Back
      </button>
    </form>
  )
}

function DeleteForm(props: { thread: ListedThread }) {
  return (
    <form class="chats-form" onSubmit={(event) => void submitDelete(event, props.thread)}>
      <p>Delete “{titleOf(props.thread)}” for good?</p>
      <button type="submit" class="button deny is-final">
        Delete
      </button>
      <button type="button" class="button" ref={takeFocus} onClick={closeForm}>
        Keep
      </button>
    </form>
  )
}
