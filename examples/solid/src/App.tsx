import { showFirst, waitsForReader } from '@countersign/example-page/answer-question'
import { chats } from '@countersign/example-page/chats'
import { useChatClient, useChatSelector, useMessageIds } from '@countersign/solid'
import { type Accessor, createEffect, createSignal, Show, untrack } from 'solid-js'
import { Announcer } from './Announcer.js'
import { ChatHeader } from './ChatHeader.js'
import { Chats } from './Chats.js'
import { Composer } from './Composer.js'
import { createStickToBottom } from './createStickToBottom.js'
import { EmptyState } from './EmptyState.js'
import { ErrorNotice } from './ErrorNotice.js'
import { PendingBar } from './PendingBar.js'
import { Queue } from './Queue.js'
import { StandingApprovals } from './StandingApprovals.js'
import { Thread } from './Thread.js'
import { Unsent } from './Unsent.js'

export function App() {
  const ids = useMessageIds()
  const isEmpty = () => ids().length === 0
  const [scroller, setScroller] = createSignal<HTMLElement>()
  const { isAtBottom, toBottom } = createStickToBottom(() => (isEmpty() ? undefined : scroller()))
  createFirstRequestInView(isAtBottom)
  return (
    <div class="chat">
      <ChatHeader isEmpty={isEmpty()} />
      <Show when={chats.isOffered}>
        <Chats />
      </Show>
      <main class="chat-scroll" ref={setScroller}>
        <Show when={!isEmpty()} fallback={<EmptyState />}>
          <Thread />
        </Show>
      </main>
      <footer class="chat-footer">
        <div class="chat-footer-inner">
          <Show when={!isAtBottom()}>
            <button type="button" class="button to-bottom" onClick={toBottom}>
              Scroll to end
            </button>
          </Show>
          <ErrorNotice />
          <Unsent />
          <PendingBar />
          <Queue />
          <StandingApprovals />
          <Composer />
        </div>
      </footer>
      <Announcer />
    </div>
  )
}

/** Following the end would scroll the first of many requests out of view, but users read them from the top. */
function createFirstRequestInView(follows: Accessor<boolean>) {
  const client = useChatClient()
  const waits = useChatSelector(waitsForReader)
  createEffect(() => {
    if (waits() && untrack(follows)) showFirst(client().getSnapshot())
  })
}
