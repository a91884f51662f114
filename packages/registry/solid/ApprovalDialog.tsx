import { approvalQueue } from '@countersign/client'
import { DIALOG_TITLE_ID, showOneByOne } from '@countersign/client/ui'
import { useChatClient } from '@countersign/solid'
import { onCleanup, onMount, Show } from 'solid-js'
import { DialogRequest } from './DialogRequest.js'
import { fromStore } from './fromStore.js'

interface ApprovalDialogProps {
  /** What happened to an answer that came too late. */
  late: string | undefined
  onLate: (told: string | undefined) => void
  onClose: () => void
}

/** The requests one by one, in a modal dialog. It closes when none is left to show; closing answers nothing. */
export function ApprovalDialog(props: ApprovalDialogProps) {
  const client = useChatClient()
  const requests = fromStore(() => approvalQueue(client()))
  const place = () => (requests().count > 1 ? `${requests().position} of ${requests().count}` : undefined)
  const show = (dialog: HTMLDialogElement) =>
    onMount(() => onCleanup(showOneByOne(client(), dialog, () => props.onClose())))
  return (
    <dialog class="approval-dialog" aria-labelledby={DIALOG_TITLE_ID} ref={show}>
      {/* Keyed by id: another request starts with nothing expanded. */}
      <Show when={requests().current?.approval.id} keyed>
        {(_id) => <DialogRequest part={requests().current} place={place()} onLate={props.onLate} />}
      </Show>
      <Show when={props.late}>
        <p class="tool-late" role="status">
          {props.late}
        </p>
      </Show>
    </dialog>
  )
}
