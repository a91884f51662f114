import { type ApprovalResponse, type ApprovalView, approvalQueue } from '@countersign/client'
import { client } from './chat.js'
import { focusComposer } from './focus.js'
import { lateOf } from './words.js'

export const DIALOG_TITLE_ID = 'approval-dialog-title'

/** The requests of the conversation, one at a time. */
export const queue = approvalQueue(client)

/** Each request that comes up begins at its name: neither Enter nor Space can answer what was not read yet. */
export function focusTitle(): void {
  document.getElementById(DIALOG_TITLE_ID)?.focus()
}

/**
 * Shows the requests in `dialog`, those that were set aside too, until none is left to show or the person closes it, and then calls
 * `onClose`. Closing answers nothing. Returns how to stop following the queue.
 */
export function showOneByOne(dialog: HTMLDialogElement, onClose: () => void): () => void {
  const following = new AbortController()
  const { signal } = following
  // At once: the browser's own event `close` comes a moment later, when the person may have opened the dialog again.
  const close = () => {
    following.abort()
    // Gives the focus back to the button that opened the dialog. With the last request that button goes away.
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

/** Gives an answer. Resolves with what to tell the person where it came too late. */
export async function answerInDialog(response: ApprovalResponse): Promise<string | undefined> {
  return lateOf(await client.addToolApprovalResponse(response))
}

/** How a choice looks. */
export function choiceClass(option: ApprovalView['choices'][number]['option']): string {
  switch (option) {
    case 'deny':
      return 'button deny'
    case 'once':
      return 'button approve'
    case 'session':
      return 'button'
    default:
      return option satisfies never
  }
}
