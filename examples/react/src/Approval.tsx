import { displayText, type ToolCallPart } from '@countersign/core'
import { type Answer, approvalOf, denial, giveAnswer } from '@countersign/example-page/answer'
import { hiddenIn, showArguments } from '@countersign/example-page/arguments'
import { askersOf } from '@countersign/example-page/asked-by'
import type { Draft } from '@countersign/example-page/edit'
import { focusCard } from '@countersign/example-page/focus'
import { useState } from 'react'
import { Arguments } from './Arguments.js'
import { AskedBy } from './AskedBy.js'
import { DenyForm } from './DenyForm.js'
import { EditForm } from './EditForm.js'
import { Expiry } from './Expiry.js'
import { Help } from './Help.js'
import { MaskedNote } from './MaskedNote.js'
import { ServerWords } from './ServerWords.js'

type Mode = 'choose' | 'deny' | 'edit'

/** A request to the person: what would run, the server's words about it, and the ways to answer. */
export function Approval({ part, onLate }: { part: ToolCallPart; onLate: (told: string) => void }) {
  const [mode, setMode] = useState<Mode>('choose')
  const [expanded, setExpanded] = useState(false)
  const [exact, setExact] = useState(false)
  // Both live here, so that going back and forth loses nothing.
  const [reason, setReason] = useState('')
  const [draft, setDraft] = useState<Draft>({})
  const answer = async (given: Answer) => {
    const late = await giveAnswer(part, given)
    if (late !== undefined) onLate(late)
  }
  const back = () => {
    // The field that had the focus goes away with its form.
    focusCard(part)
    setMode('choose')
  }
  const { approval } = part
  if (!approval) return null
  const input = approval.display === undefined || exact ? part.input : approval.display
  const hidden = expanded ? 0 : hiddenIn(showArguments(input))
  return (
    <div className="approval">
      <AskedBy askers={askersOf(part.metadata)} />
      {approval.message && <ServerWords message={displayText(approval.message)} />}
      {mode !== 'edit' && <Arguments input={input} expanded={expanded} onExpand={() => setExpanded(true)} />}
      {approval.display !== undefined && <MaskedNote exact={exact} onToggle={() => setExact(!exact)} />}
      {approval.problem ? (
        <Help part={part} />
      ) : mode === 'deny' ? (
        <DenyForm
          reason={reason}
          onChange={setReason}
          onDeny={() => void answer(denial(reason))}
          onBack={back}
        />
      ) : mode === 'edit' ? (
        <EditForm
          input={part.input}
          allowEdits={approval.allowEdits ?? false}
          draft={draft}
          onChange={setDraft}
          onApprove={(edited) => void answer(approvalOf(edited))}
          onBack={back}
        />
      ) : (
        <Choices
          part={part}
          hidden={hidden}
          onMode={setMode}
          onApprove={(scope) => void answer({ approved: true, scope })}
        />
      )}
      {approval.expiresAt && <Expiry at={approval.expiresAt} />}
    </div>
  )
}

interface ChoicesProps {
  part: ToolCallPart
  hidden: number
  onMode: (mode: Mode) => void
  onApprove: (scope: 'once' | 'session') => void
}

function Choices({ part, hidden, onMode, onApprove }: ChoicesProps) {
  const noteId = `${part.approval?.id}-note`
  const options = part.approval?.options ?? []
  const gate = hidden > 0 ? { disabled: true, 'aria-describedby': noteId } : {}
  return (
    <>
      <fieldset className="approval-choices">
        <legend className="visually-hidden">Your answer</legend>
        {options.includes('once') && (
          <button type="button" className="button approve" onClick={() => onApprove('once')} {...gate}>
            Approve once
          </button>
        )}
        {part.approval?.allowEdits && (
          <button type="button" className="button" onClick={() => onMode('edit')}>
            Edit…
          </button>
        )}
        {options.includes('session') && (
          <button type="button" className="button" onClick={() => onApprove('session')} {...gate}>
            Always (this session)
          </button>
        )}
        {options.includes('deny') && (
          <button type="button" className="button deny" onClick={() => onMode('deny')}>
            Deny…
          </button>
        )}
      </fieldset>
      {hidden > 0 && (
        <p className="approval-note" id={noteId}>
          {hidden.toLocaleString('en')} characters are not shown. Show all of them before you approve.
        </p>
      )}
    </>
  )
}
