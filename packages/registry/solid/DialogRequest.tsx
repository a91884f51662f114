import { type ApprovalResponse, approvalQueue } from '@countersign/client'
import { DIALOG_TITLE_ID, requestView, sendResponse } from '@countersign/client/ui'
import type { ToolCallPart } from '@countersign/core'
import { useChatClient } from '@countersign/solid'
import { createMemo, createSignal, Show } from 'solid-js'
import { AskedBy } from './AskedBy.js'
import { DialogArguments } from './DialogArguments.js'
import { DialogChoices } from './DialogChoices.js'
import { Preview } from './Preview.js'
import { Segments } from './SafeText.js'
import { ServerWords } from './ServerWords.js'
import { takeFocus } from './takeFocus.js'

interface DialogRequestProps {
  part: ToolCallPart | undefined
  /** For example "1 of 3", if there are several. */
  place: string | undefined
  onLate: (told: string | undefined) => void
}

/** One request in the dialog: what would run, the server's message about it, and the choices. */
export function DialogRequest(props: DialogRequestProps) {
  const client = useChatClient()
  const queue = () => approvalQueue(client())
  const [expanded, setExpanded] = createSignal(false)
  const [exact, setExact] = createSignal(false)
  const [isSending, setIsSending] = createSignal(false)
  const view = createMemo(
    () => props.part && requestView(props.part, { expanded: expanded(), exact: exact() }),
  )

  async function answer(response: ApprovalResponse) {
    const { onLate } = props
    setIsSending(true)
    onLate(await sendResponse(client(), response))
    setIsSending(false)
  }

  return (
    <Show when={view()}>
      {(shown) => (
        <>
          <header class="dialog-header">
            <h2 class="dialog-title" id={DIALOG_TITLE_ID} tabIndex={-1} ref={takeFocus}>
              <Segments shown={shown().title} />
            </h2>
            <Show when={props.place}>
              <p class="dialog-count">{props.place}</p>
            </Show>
          </header>
          <AskedBy askers={shown().askedBy} />
          <Show when={shown().message}>{(message) => <ServerWords message={message()} />}</Show>
          <Show when={shown().preview}>
            {(preview) => <Preview view={preview()} expanded={expanded()} />}
          </Show>
          <Show when={shown().arguments || shown().hidden > 0 || shown().suspicious}>
            <DialogArguments
              shown={shown().arguments}
              hidden={shown().hidden}
              suspicious={shown().suspicious}
              expanded={expanded()}
              exact={exact()}
              onExpand={() => setExpanded(true)}
              onExact={() => setExact(!exact())}
            />
          </Show>
          <DialogChoices
            view={shown()}
            isSending={isSending()}
            onAnswer={(response) => void answer(response)}
          />
          <footer class="dialog-footer">
            <p class="approval-note">“Cancel” denies the request. “Later” leaves it open.</p>
            <Show when={props.place}>
              <button type="button" class="button dialog-next" onClick={() => queue().next()}>
                Next
              </button>
            </Show>
            <button type="button" class="button dialog-later" onClick={() => queue().dismiss()}>
              Later
            </button>
          </footer>
        </>
      )}
    </Show>
  )
}
