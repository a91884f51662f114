'use client'

import type { ApprovalView } from '@countersign/client'
import {
  type Answer,
  answerName,
  approvalOf,
  denial,
  type EditSettings,
  firstDraft,
  focusCard,
  giveAnswer,
  heldWords,
  requestView,
  SESSION_NOTE,
} from '@countersign/client/ui'
import type { ToolCallPart } from '@countersign/core'
import { useChatClient } from '@countersign/react'
import { useId, useState } from 'react'
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
  /** Called after each answer: with a message for the user if it came too late. The request is gone by then. */
  onLate?: (told: string | undefined) => void
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
    onLate?.(late)
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
        <Choices part={part} view={view} onMode={setMode} onAnswer={(given) => void answer(given)} />
      )}
      {approval.expiresAt && <Expiry at={approval.expiresAt} />}
    </div>
  )
}

interface ChoicesProps {
  part: ToolCallPart
  view: ApprovalView
  onMode: (mode: Mode) => void
  onAnswer: (answer: Answer) => void
}

function Choices({ part, view: { hidden, choices, edit, mandates }, onMode, onAnswer }: ChoicesProps) {
  const noteId = useId()
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
            aria-label={answerName('Approve once', part)}
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
            aria-label={answerName('Edit…', part)}
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
            aria-label={answerName('Always (this session)', part)}
            aria-describedby={describedBy}
            onClick={() => onAnswer({ approved: true, scope: 'session' })}
          >
            Always (this session)
          </button>
        )}
        {deny && (
          <>
            <button
              type="button"
              className="button deny"
              aria-label={answerName('Deny', part)}
              onClick={() => onAnswer({ approved: false })}
            >
              Deny
            </button>
            <button
              type="button"
              className="button link"
              aria-label={answerName('Deny with a reason…', part)}
              onClick={() => onMode('deny')}
            >
              Deny with a reason…
            </button>
          </>
        )}
      </fieldset>
      {session && <p className="approval-note">{SESSION_NOTE}</p>}
      <Mandates choices={mandates} onAnswer={onAnswer} />
      {hidden > 0 && (
        <p className="approval-note" id={noteId}>
          {heldWords(hidden)}
        </p>
      )}
    </>
  )
}
