import type { ToolMap } from '@countersign/core'
import { approvalQueue } from '../approval-queue.js'
import type { ChatClient } from '../client.js'
import { DIALOG_TITLE_ID, focusComposer } from './focus.js'

/** Each new request starts with the focus on its title, so that Enter or Space cannot answer a request the user has not read. */
function focusTitle(): void {
  document.getElementById(DIALOG_TITLE_ID)?.focus()
}

/**
 * Shows the requests in `dialog`, including those set aside, until none is left or the user closes it, and
 * then calls `onClose`. Closing answers nothing. Returns a function that stops following the queue.
 */
export function showOneByOne<Tools extends ToolMap = ToolMap>(
  client: ChatClient<Tools>,
  dialog: HTMLDialogElement,
  onClose: () => void,
): () => void {
  const queue = approvalQueue(client)
  const following = new AbortController()
  const { signal } = following
  // Called directly: the `close` event fires later, when the user may have opened the dialog again.
  const close = () => {
    following.abort()
    // Returns the focus to the button that opened the dialog. With the last request that button disappears.
    dialog.close()
    if (queue.getSnapshot().count === 0) focusComposer()
    onClose()
  }
  const cancel = (event: Event) => {
    event.preventDefault()
    close()
  }
  queue.reopen()
  if (!dialog.open) dialog.showModal()
  focusTitle()
  dialog.addEventListener('cancel', cancel, { signal })
  dialog.addEventListener('close', close, { signal })
  const leave = queue.subscribe(() => {
    if (!queue.getSnapshot().current) close()
  })
  signal.addEventListener('abort', leave)
  return () => following.abort()
}

/** Escape leaves a form, with `leave`, and not the dialog around it. */
export function leaveOnEscape(event: Pick<KeyboardEvent, 'key' | 'preventDefault'>, leave: () => void): void {
  if (event.key !== 'Escape') return
  event.preventDefault()
  leave()
}
