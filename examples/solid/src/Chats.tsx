import { CHATS_ID, chats } from '@countersign/example-page/chats'
import { fromStore } from '@countersign/registry/solid/fromStore'
import { For, Show } from 'solid-js'
import { ChatRow } from './ChatRow.js'

/** The conversations of the user: beside the chat, or on a narrow screen in a drawer. */
export function Chats() {
  const snapshot = fromStore(() => chats)
  const formOf = (threadId: string) => {
    const { form } = snapshot()
    return form?.threadId === threadId ? form.kind : undefined
  }
  const threadOf = (id: string) => snapshot().threads.find(({ threadId }) => threadId === id)
  return (
    <nav class="chats" id={CHATS_ID} aria-label="Chats" popover="auto">
      <ul class="chats-list">
        {/* By id: a row whose conversation has changed stays, and keeps the focus and what was typed. */}
        <For each={snapshot().threads.map(({ threadId }) => threadId)}>
          {(threadId) => (
            <Show when={threadOf(threadId)}>
              {(thread) => (
                <li class="chats-item">
                  <ChatRow thread={thread()} form={formOf(threadId)} />
                </li>
              )}
            </Show>
          )}
        </For>
      </ul>
      <Show when={snapshot().hasMore}>
        <button type="button" class="button link" onClick={chats.loadMore}>
          Show more
        </button>
      </Show>
      <Show when={snapshot().problem}>
        {(problem) => (
          <p class="chats-problem" role="status">
            {problem()}{' '}
            <button type="button" class="button link" onClick={chats.load}>
              Reload the list
            </button>
          </p>
        )}
      </Show>
    </nav>
  )
}
