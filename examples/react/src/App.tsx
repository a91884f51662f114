import { showFirst, waitsForReader } from '@countersign/example-page/answer-question'
import { startAnew } from '@countersign/example-page/grants'
import { useChatClient, useChatSelector, useMessageIds } from '@countersign/react'
import { useEffect, useRef } from 'react'
import { Announcer } from './Announcer.js'
import { Composer } from './Composer.js'
import { EmptyState } from './EmptyState.js'
import { ErrorNotice } from './ErrorNotice.js'
import { PendingBar } from './PendingBar.js'
import { Queue } from './Queue.js'
import { StandingApprovals } from './StandingApprovals.js'
import { Thread } from './Thread.js'
import { Unsent } from './Unsent.js'
import { useStickToBottom } from './useStickToBottom.js'

export function App() {
  const isEmpty = useMessageIds().length === 0
  const { scroller, isAtBottom, toBottom } = useStickToBottom(!isEmpty)
  useFirstRequestInView(isAtBottom)
  return (
    <div className="chat">
      <Header isEmpty={isEmpty} />
      <main className="chat-scroll" ref={scroller}>
        {isEmpty ? <EmptyState /> : <Thread />}
      </main>
      <footer className="chat-footer">
        <div className="chat-footer-inner">
          {!isAtBottom && (
            <button type="button" className="button to-bottom" onClick={toBottom}>
              Scroll to end
            </button>
          )}
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
      <h1 className="wordmark">Countersign</h1>
      <p className="chat-subject">Nothing changes without your approval.</p>
      <button type="button" className="button new-chat" disabled={isEmpty} onClick={startAnew}>
        New chat
      </button>
    </header>
  )
}
