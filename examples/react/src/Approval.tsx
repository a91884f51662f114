import type { ApprovalView } from '@countersign/client'
import type { ToolCallPart } from '@countersign/core'
import { type Answer, approvalOf, denial, firstDraft, giveAnswer } from '@countersign/example-page/answer'
import { cardOf } from '@countersign/example-page/arguments'
import { focusCard } from '@countersign/example-page/focus'
import { heldWords } from '@countersign/example-page/words'
import { useState } from 'react'
import { Arguments } from './Arguments.js'
import { AskedBy } from './AskedBy.js'
import { DenyForm } from './DenyForm.js'
import { EditForm } from './EditForm.js'
import { Expiry } from './Expiry.js'
import { Help } from './Help.js'
import { MandateChoices } from './MandateChoices.js'
import { MaskedNote } from './MaskedNote.js'
import { Preview } from './Preview.js'
import { ServerWords } from './ServerWords.js'

type Mode = 'choose' | 'deny' | 'edit'

/** An approval request: what would run, the server's message about it, and the choices. */
export function Approval({ part, onLate }: { part: ToolCallPart; onLate: (told: string) => void }) {
  const [mode, setMode] = useState<Mode>('choose')
  const [expanded, setExpanded] = useState(false)
  const [exact, setExact] = useState(false)
  // Both are kept here, so that switching forms loses nothing.
  const [reason, setReason] = useState('')
  const [draft, setDraft] = useState(() => firstDraft(part))
  const answer = async (given: Answer) => {
    const late = await giveAnswer(part, given)
    if (late !== undefined) onLate(late)
  }
  const back = () => {
    // The focused field disappears with its form.
    focusCard(part)
    setMode('choose')
  }
  const { approval } = part
  const view = cardOf(part, expanded, exact)
  if (!approval || !view) return null
  return (
    <div className="approval">
      <AskedBy askers={view.askedBy} />
      {view.message && <ServerWords message={view.message} isEditing={mode === 'edit'} />}
      {mode !== 'edit' && view.preview && <Preview view={view.preview} expanded={expanded} />}
      {mode !== 'edit' && (
        <Arguments
          fields={view.arguments?.fields ?? []}
          hidden={view.hidden}
          suspicious={view.suspicious}
          expanded={expanded}
          onExpand={() => setExpanded(true)}
        />
      )}
      {approval.display !== undefined && <MaskedNote exact={exact} onToggle={() => setExact(!exact)} />}
      <Help part={part} />
      {approval.problem ? null : mode === 'deny' ? (
        <DenyForm
          reason={reason}
          onChange={setReason}
          onDeny={() => void answer(denial(reason))}
          onBack={back}
        />
      ) : mode === 'edit' ? (
        <EditForm
          part={part}
          disabled={view.edit.status !== 'offered' || view.edit.disabled}
          draft={draft}
          onChange={setDraft}
          onApprove={(input, edited) => void answer(approvalOf(input, edited))}
          onBack={back}
        />
      ) : (
        <Choices view={view} onMode={setMode} onAnswer={(given) => void answer(given)} />
      )}
      {approval.expiresAt && <Expiry at={approval.expiresAt} />}
    </div>
  )
}

interface ChoicesProps {
  view: ApprovalView
  onMode: (mode: Mode) => void
  onAnswer: (answer: Answer) => void
}

function Choices({ view: { id, hidden, choices, edit, mandates }, onMode, onAnswer }: ChoicesProps) {
  const noteId = `${id}-note`
  const describedBy = hidden > 0 ? noteId : undefined
  const [once, session, deny] = (['once', 'session', 'deny'] as const).map((option) =>
    choices.find((choice) => choice.option === option),
  )
  return (
    <>
      <fieldset className="approval-choices">
        <legend className="visually-hidden">Your answer</legend>
        {once && (
          <button
            type="button"
            className="button approve"
            disabled={once.disabled}
            aria-describedby={describedBy}
            onClick={() => onAnswer({ approved: true, scope: 'once' })}
          >
            Approve once
          </button>
        )}
        {edit.status === 'offered' && (
          <button
            type="button"
            className="button"
            disabled={edit.disabled}
            aria-describedby={describedBy}
            onClick={() => onMode('edit')}
          >
            Edit…
          </button>
        )}
        {session && (
          <button
            type="button"
            className="button"
            disabled={session.disabled}
            aria-describedby={describedBy}
            onClick={() => onAnswer({ approved: true, scope: 'session' })}
          >
            Always (this session)
          </button>
        )}
        {deny && (
          <button type="button" className="button deny" onClick={() => onMode('deny')}>
            Deny…
          </button>
        )}
      </fieldset>
      <MandateChoices choices={mandates} onAnswer={onAnswer} />
      {hidden > 0 && (
        <p className="approval-note" id={noteId}>
          {heldWords(hidden)}
        </p>
      )}
    </>
  )
}
