import { approvalQueue } from '@countersign/client'
import { denyAll, type EditSettings, focusCard, nextRequest, pendingWords } from '@countersign/client/ui'
import { useChatClient, usePendingApprovals } from '@countersign/solid'
import { createSignal, Show } from 'solid-js'
import { ApprovalDialog } from './ApprovalDialog.js'
import { fromStore } from './fromStore.js'

/** The number of pending requests, with buttons to jump to each, to go through them one by one, and to deny all. */
export function PendingBar(props: { edits?: EditSettings | undefined }) {
  const [isOpen, setIsOpen] = createSignal(false)
  const [late, setLate] = createSignal<string>()
  const open = () => {
    setLate(undefined)
    setIsOpen(true)
  }
  return (
    <>
      <Bar onOneByOne={open} />
      <Show
        when={isOpen()}
        fallback={
          <Show when={late()}>
            <p class="tool-late" role="status">
              {late()}
            </p>
          </Show>
        }
      >
        <ApprovalDialog edits={props.edits} late={late()} onLate={setLate} onClose={() => setIsOpen(false)} />
      </Show>
    </>
  )
}

function Bar(props: { onOneByOne: () => void }) {
  const client = useChatClient()
  const pending = usePendingApprovals()
  const requests = fromStore(() => approvalQueue(client()))
  const showNext = () => {
    const next = nextRequest(pending())
    if (next) focusCard(next)
  }
  return (
    <Show when={pending().length > 0}>
      <div class="pending-bar">
        <p class="pending-count">{pendingWords(pending().length, requests().dismissed.length)}</p>
        <button
          type="button"
          class="button"
          // Keeps the focus in its card, which is where "next" counts from.
          onMouseDown={(event) => event.preventDefault()}
          onClick={showNext}
        >
          {pending().length === 1 ? 'Show it' : 'Show next'}
        </button>
        <Show when={pending().length > 1}>
          <button type="button" class="button deny" onClick={() => denyAll(client())}>
            Deny all
          </button>
        </Show>
        <button type="button" class="button" onClick={() => props.onOneByOne()}>
          One by one…
        </button>
      </div>
    </Show>
  )
}
