import { approvalQueue } from '@countersign/client'
import { DIALOG_TITLE_ID, type EditSettings, showOneByOne } from '@countersign/client/ui'
import { useChatClient } from '@countersign/solid'
import { onCleanup, onMount, Show } from 'solid-js'
import { ApprovalCard } from './ApprovalCard.js'
import { fromStore } from './fromStore.js'
import { SafeText } from './SafeText.js'
import { takeFocus } from './takeFocus.js'

interface ApprovalDialogProps {
  /** Which edits fit, and where they are previewed. Default: both are left to the server. */
  edits?: EditSettings | undefined
  /** What happened to an answer that came too late. */
  late: string | undefined
  onLate: (told: string | undefined) => void
  onClose: () => void
}

/** The requests one by one, in a modal dialog. It closes when none is left to show; closing answers nothing. */
export function ApprovalDialog(props: ApprovalDialogProps) {
  const client = useChatClient()
  const queue = () => approvalQueue(client())
  const requests = fromStore(queue)
  const current = () => requests().current
  const show = (dialog: HTMLDialogElement) =>
    onMount(() => onCleanup(showOneByOne(client(), dialog, () => props.onClose())))
  return (
    <dialog class="approval-dialog" aria-labelledby={DIALOG_TITLE_ID} ref={show}>
      {/* Keyed by id: another request starts with nothing expanded. */}
      <Show when={current()?.approval.id} keyed>
        {(_id) => (
          <Show when={current()}>
            {(part) => (
              <>
                <header class="dialog-header">
                  <h2 class="dialog-title" id={DIALOG_TITLE_ID} tabIndex={-1} ref={takeFocus}>
                    <SafeText text={part().name} />
                  </h2>
                  <Show when={requests().count > 1}>
                    <p class="dialog-count">
                      {requests().position} of {requests().count}
                    </p>
                  </Show>
                </header>
                <ApprovalCard part={part()} edits={props.edits} onLate={props.onLate} />
              </>
            )}
          </Show>
        )}
      </Show>
      <Show when={current()}>
        <footer class="dialog-footer">
          <Show when={requests().count > 1}>
            <button type="button" class="button dialog-next" onClick={() => queue().next()}>
              Next
            </button>
          </Show>
          <button type="button" class="button dialog-later" onClick={() => queue().dismiss()}>
            Later
          </button>
        </footer>
      </Show>
      <Show when={props.late}>
        <p class="tool-late" role="status">
          {props.late}
        </p>
      </Show>
    </dialog>
  )
}
