import { type ApprovalResponse, approvalQueue } from '@countersign/client'
import { DIALOG_TITLE_ID, requestView, sendResponse } from '@countersign/client/ui'
import type { ToolCallPart } from '@countersign/core'
import { useChatClient } from '@countersign/react'
import { useState } from 'react'
import { AskedBy } from './asked-by'
import { DialogArguments } from './dialog-arguments'
import { DialogChoices } from './dialog-choices'
import { Preview } from './preview'
import { Segments } from './safe-text'
import { ServerWords } from './server-words'
import { takeFocus } from './take-focus'

interface DialogRequestProps {
  part: ToolCallPart
  /** For example "1 of 3", if there are several. */
  place: string | undefined
  onLate: (told: string | undefined) => void
}

/** One request in the dialog: what would run, the server's message about it, and the choices. */
export function DialogRequest({ part, place, onLate }: DialogRequestProps) {
  const client = useChatClient()
  const queue = approvalQueue(client)
  const [expanded, setExpanded] = useState(false)
  const [exact, setExact] = useState(false)
  const [isSending, setIsSending] = useState(false)
  const answer = async (response: ApprovalResponse) => {
    setIsSending(true)
    onLate(await sendResponse(client, response))
    setIsSending(false)
  }
  const view = requestView(part, { expanded, exact })
  if (!view) return null
  return (
    <>
      <header className="dialog-header">
        <h2 className="dialog-title" id={DIALOG_TITLE_ID} tabIndex={-1} ref={takeFocus}>
          <Segments shown={view.title} />
        </h2>
        {place !== undefined && <p className="dialog-count">{place}</p>}
      </header>
      <AskedBy askers={view.askedBy} />
      {view.message && <ServerWords message={view.message} />}
      {view.preview && <Preview view={view.preview} expanded={expanded} />}
      {(view.arguments || view.hidden > 0 || view.suspicious) && (
        <DialogArguments
          shown={view.arguments}
          hidden={view.hidden}
          suspicious={view.suspicious}
          expanded={expanded}
          exact={exact}
          onExpand={() => setExpanded(true)}
          onExact={() => setExact(!exact)}
        />
      )}
      <DialogChoices view={view} isSending={isSending} onAnswer={(response) => void answer(response)} />
      <footer className="dialog-footer">
        <p className="approval-note">“Cancel” denies the request. “Later” leaves it open.</p>
        {place !== undefined && (
          <button type="button" className="button dialog-next" onClick={queue.next}>
            Next
          </button>
        )}
        <button type="button" className="button dialog-later" onClick={() => queue.dismiss()}>
          Later
        </button>
      </footer>
    </>
  )
}
