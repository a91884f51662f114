import { showFirst, waitsForReader } from '@countersign/client/ui'
import { addressOf } from '@countersign/example-page/address'
import { edits } from '@countersign/example-page/chat'
import { CHATS_ID, chats } from '@countersign/example-page/chats'
import { useChatClient, useChatSelector, useMessageIds } from '@countersign/react'
import { Announcer } from '@countersign/registry/react/announcer'
import { ErrorNotice } from '@countersign/registry/react/error-notice'
import { PendingBar } from '@countersign/registry/react/pending-bar'
import { Queue } from '@countersign/registry/react/queue'
import { StandingApprovals } from '@countersign/registry/react/standing-approvals'
import { Unsent } from '@countersign/registry/react/unsent'
import { useStickToBottom } from '@countersign/registry/react/use-stick-to-bottom'
import { useEffect, useRef } from 'react'
import { Chats } from './Chats.js'
import { Composer } from './Composer.js'
import { EmptyState } from './EmptyState.js'
import { Thread } from './Thread.js'

export function App() {
  const isEmpty = useMessageIds().length === 0
  const { scroller, isAtBottom, toBottom } = useStickToBottom(!isEmpty)
  useFirstRequestInView(isAtBottom)
  return (
    <div className="chat">
      <Header isEmpty={isEmpty} />
      {chats.isOffered && <Chats />}
      <main className="chat-scroll" ref={scroller}>
        {isEmpty ? <EmptyState /> : <Thread />}
      </main>
      <footer className="chat-footer">
        <div className="chat-footer-inner">
          <button type="button" className="button to-bottom" data-unused={isAtBottom} onClick={toBottom}>
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
function useFirstRequestInView(follows: boolean) {
  const { getSnapshot } = useChatClient()
  const waits = useChatSelector(waitsForReader)
  const followed = useRef(follows)
  followed.current = follows
  useEffect(() => {
    if (waits && followed.current) showFirst(getSnapshot())
  }, [waits, getSnapshot])
}

function Header({ isEmpty }: { isEmpty: boolean }) {
  return (
    <header className="chat-header">
      {chats.isOffered && (
        <button type="button" className="button chats-button" popoverTarget={CHATS_ID}>
          Chats
        </button>
      )}
      <h1 className="wordmark">Countersign</h1>
      <p className="chat-subject">Nothing changes without your approval.</p>
      {!isEmpty && (
        <a className="button new-chat" href={addressOf()}>
          New chat
        </a>
      )}
    </header>
  )
}
