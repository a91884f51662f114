'use client'

import type { ApprovalView } from '@countersign/client'
import {
  type Answer,
  approvalOf,
  denial,
  type EditSettings,
  firstDraft,
  focusCard,
  giveAnswer,
  heldWords,
  requestView,
} from '@countersign/client/ui'
import type { ToolCallPart } from '@countersign/core'
import { useChatClient } from '@countersign/react'
import { useState } from 'react'
import { Arguments } from './arguments'
import { AskedBy } from './asked-by'
import { DenyForm } from './deny-form'
import { EditForm } from './edit-form'
import { Expiry } from './expiry'
import { Help } from './help'
import { Mandates } from './mandates'
import { MaskedNote } from './masked-note'
import { Preview } from './preview'
import { ServerWords } from './server-words'

type Mode = 'choose' | 'deny' | 'edit'

interface ApprovalCardProps {
  part: ToolCallPart
  /** Which edits fit, and where they are previewed. Default: both are left to the server. */
  edits?: EditSettings | undefined
  /** Called with a message for the user if an answer came too late. The request is gone by then. */
  onLate?: (told: string) => void
}

/** An approval request: what would run, the server's message about it, and the choices. */
export function ApprovalCard({ part, edits = {}, onLate }: ApprovalCardProps) {
  const client = useChatClient()
  const [mode, setMode] = useState<Mode>('choose')
  const [expanded, setExpanded] = useState(false)
  const [exact, setExact] = useState(false)
  // Both are kept here, so that switching forms loses nothing.
  const [reason, setReason] = useState('')
  const [draft, setDraft] = useState(() => firstDraft(client, part))
  const answer = async (given: Answer) => {
    const late = await giveAnswer(client, part, given)
    if (late !== undefined) onLate?.(late)
  }
  const back = () => {
    // The focused field disappears with its form.
    focusCard(part)
    setMode('choose')
  }
  const { approval } = part
  const view = requestView(part, { expanded, exact, fields: true })
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
          edits={edits}
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
      <Mandates choices={mandates} onAnswer={onAnswer} />
      {hidden > 0 && (
        <p className="approval-note" id={noteId}>
          {heldWords(hidden)}
        </p>
      )}
    </>
  )
}
