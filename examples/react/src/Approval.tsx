import type { ToolCallPart } from '@countersign/core'
import { useChatClient, usePendingApprovals } from '@countersign/react'
import { useState } from 'react'
import { Arguments } from './Arguments.js'
import { hiddenIn, showArguments } from './arguments.js'
import { DenyForm } from './DenyForm.js'
import { EditForm } from './EditForm.js'
import type { Draft } from './edit.js'
import { focusCard, nextRequest } from './focus.js'
import { SafeText } from './SafeText.js'
import { lateOf, problemOf } from './words.js'

type Mode = 'choose' | 'deny' | 'edit'

interface Answer {
  approved: boolean
  reason?: string
  input?: unknown
  scope?: 'once' | 'session'
}

/** A request to the person: what would run, the server's words about it, and the ways to answer. */
export function Approval({ part, onLate }: { part: ToolCallPart; onLate: (told: string) => void }) {
  const [mode, setMode] = useState<Mode>('choose')
  const [expanded, setExpanded] = useState(false)
  const [exact, setExact] = useState(false)
  // Both live here, so that going back and forth loses nothing.
  const [reason, setReason] = useState('')
  const [draft, setDraft] = useState<Draft>({})
  const answer = useAnswer(part, onLate)
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
      {approval.message && <ServerWords message={approval.message} />}
      {mode !== 'edit' && <Arguments input={input} expanded={expanded} onExpand={() => setExpanded(true)} />}
      {approval.display !== undefined && (
        <p className="approval-note">
          {exact
            ? 'These are the exact arguments.'
            : 'The server masks or completes some values for display.'}{' '}
          <button type="button" className="button link" onClick={() => setExact(!exact)}>
            {exact ? 'Show as the server shows them' : 'Show the exact arguments'}
          </button>
        </p>
      )}
      {approval.problem ? (
        <p className="tool-failure">{problemOf(approval.problem)}</p>
      ) : mode === 'deny' ? (
        <DenyForm
          reason={reason}
          onChange={setReason}
          onDeny={() =>
            answer(reason.trim() === '' ? { approved: false } : { approved: false, reason: reason.trim() })
          }
          onBack={back}
        />
      ) : mode === 'edit' ? (
        <EditForm
          input={part.input}
          allowEdits={approval.allowEdits ?? false}
          draft={draft}
          onChange={setDraft}
          onApprove={(edited) =>
            answer(edited === undefined ? { approved: true } : { approved: true, input: edited })
          }
          onBack={back}
        />
      ) : (
        <Choices
          part={part}
          hidden={hidden}
          onMode={setMode}
          onApprove={(scope) => answer({ approved: true, scope })}
        />
      )}
      {approval.expiresAt && <Expiry at={approval.expiresAt} />}
    </div>
  )
}

/** Gives the answer once, and tells where it came too late. Moves the focus on first: to the next open request, or to this card's heading. */
function useAnswer(part: ToolCallPart, onLate: (told: string) => void): (answer: Answer) => Promise<void> {
  const { addToolApprovalResponse } = useChatClient()
  const pending = usePendingApprovals()
  return async (answer) => {
    const id = part.approval?.id
    if (id === undefined) return
    focusCard(nextRequest(pending) ?? part)
    const told = lateOf(await addToolApprovalResponse({ id, ...answer }))
    if (told !== undefined) onLate(told)
  }
}

/** The server's text may itself be written by others: it is set apart from what this page says. */
function ServerWords({ message }: { message: string }) {
  return (
    <blockquote className="server-words">
      <span className="server-words-source">The server says</span>
      <SafeText text={message} />
    </blockquote>
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

function Expiry({ at }: { at: string }) {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return null
  return (
    <p className="approval-expiry">
      Answer until{' '}
      <time dateTime={at}>{date.toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' })}</time>
    </p>
  )
}
