import type { ListedThread } from '@countersign/client/thread-list'
import { addressOf } from '@countersign/example-page/address'
import {
  CHATS_ID,
  type ChatForm,
  chatLinkId,
  chats,
  closeForm,
  isShown,
  openForm,
  submitDelete,
  submitTitle,
  titleOf,
} from '@countersign/example-page/chats'
import { useSyncExternalStore } from 'react'

/** The conversations of the user: beside the chat, or on a narrow screen in a drawer. */
export function Chats() {
  const { threads, hasMore, problem, form } = useSyncExternalStore(chats.subscribe, chats.getSnapshot)
  return (
    <nav className="chats" id={CHATS_ID} aria-label="Chats" popover="auto">
      <ul className="chats-list">
        {threads.map((thread) => (
          <li key={thread.threadId} className="chats-item">
            <Chat thread={thread} form={form?.threadId === thread.threadId ? form.kind : undefined} />
          </li>
        ))}
      </ul>
      {hasMore && (
        <button type="button" className="button link" onClick={chats.loadMore}>
          Show more
        </button>
      )}
      {problem && (
        <p className="chats-problem" role="status">
          {problem}{' '}
          <button type="button" className="button link" onClick={chats.load}>
            Reload the list
          </button>
        </p>
      )}
    </nav>
  )
}

function Chat({ thread, form }: { thread: ListedThread; form: ChatForm | undefined }) {
  if (form === 'rename') return <RenameForm thread={thread} />
  if (form === 'delete') return <DeleteForm thread={thread} />
  const title = titleOf(thread)
  return (
    <>
      <a
        id={chatLinkId(thread)}
        className="chats-link"
        href={addressOf(thread.threadId)}
        aria-current={isShown(thread) ? 'page' : undefined}
      >
        {title}
        {thread.isRunning && <span className="chats-running">(replying)</span>}
      </a>
      <span className="chats-actions">
        <button
          type="button"
          className="button link"
          aria-label={`Rename ${title}`}
          onClick={() => openForm(thread, 'rename')}
        >
          Rename
        </button>
        <button
          type="button"
          className="button link"
          aria-label={`Delete ${title}`}
          onClick={() => openForm(thread, 'delete')}
        >
          Delete
        </button>
      </span>
    </>
  )
}

function RenameForm({ thread }: { thread: ListedThread }) {
  return (
    <form className="chats-form" onSubmit={(event) => submitTitle(event, thread)}>
      <input
        className="field-input"
        name="title"
        aria-label="Title"
        defaultValue={titleOf(thread)}
        maxLength={1024}
        autoComplete="off"
        // biome-ignore lint/a11y/noAutofocus: the user just opened this form
        autoFocus
        onFocus={(event) => event.currentTarget.select()}
      />
      <button type="submit" className="button">
        Rename
      </button>
      <button type="button" className="button" onClick={closeForm}>
        Back
      </button>
    </form>
  )
}

function DeleteForm({ thread }: { thread: ListedThread }) {
  return (
    <form className="chats-form" onSubmit={(event) => void submitDelete(event, thread)}>
      <p>Delete “{titleOf(thread)}” for good?</p>
      <button type="submit" className="button deny is-final">
        Delete
      </button>
      {/* biome-ignore lint/a11y/noAutofocus: the user just asked this, and Enter must not delete */}
      <button type="button" className="button" autoFocus onClick={closeForm}>
        Keep
      </button>
    </form>
  )
}
