import { showFirst, waitsForReader } from '@countersign/client/ui'
import { edits } from '@countersign/example-page/chat'
import { chats } from '@countersign/example-page/chats'
import { Announcer } from '@countersign/registry/solid/Announcer'
import { createStickToBottom } from '@countersign/registry/solid/createStickToBottom'
import { ErrorNotice } from '@countersign/registry/solid/ErrorNotice'
import { PendingBar } from '@countersign/registry/solid/PendingBar'
import { Queue } from '@countersign/registry/solid/Queue'
import { StandingApprovals } from '@countersign/registry/solid/StandingApprovals'
import { Unsent } from '@countersign/registry/solid/Unsent'
import { useChatClient, useChatSelector, useMessageIds } from '@countersign/solid'
import { type Accessor, createEffect, createSignal, Show, untrack } from 'solid-js'
import { ChatHeader } from './ChatHeader.js'
import { Chats } from './Chats.js'
import { Composer } from './Composer.js'
import { EmptyState } from './EmptyState.js'
import { Thread } from './Thread.js'

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
          <button type="button" class="button to-bottom" data-unused={isAtBottom()} onClick={toBottom}>
            Scroll to end
          </button>
          <ErrorNotice />
          <Unsent />
          <PendingBar edits={edits} />
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
