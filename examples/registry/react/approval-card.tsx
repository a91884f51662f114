'use client'

import {
  type ApprovalResponse,
  approvalView,
  nextStep,
  type PreviewLine,
  type PreviewView,
  previewView,
} from '@countersign/client'
import type { DisplayText, ToolCallPart } from '@countersign/core'
import { useChatClient } from '@countersign/react'
import { useId, useState } from 'react'
import { Mandates } from './mandates'

/** How much is shown at first. Nothing can be approved while something is not shown. */
const first = { maxLength: 1200, maxLines: 32, columns: 64 }

/** Every character is visible, and no segment reorders another. */
function SafeText({ text }: { text: DisplayText }) {
  return (
    <span dir="ltr" style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
      {text.segments.map((segment, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the segments of a text stay in their order
        <bdi key={index}>{segment.text}</bdi>
      ))}
    </span>
  )
}

const marks = { added: '+ ', removed: '- ', same: '', skipped: '… ' } as const satisfies Record<
  PreviewLine['change'],
  string
>

function Line({ line }: { line: PreviewLine }) {
  return (
    <>
      {marks[line.change]}
      {line.isNew && 'new: '}
      {line.cells.map((cell, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the cells of a line stay in their order
        <span key={index}>
          <SafeText text={cell} />{' '}
        </span>
      ))}
    </>
  )
}

/** What the call would do: the total first, then every line. */
function Preview({ view: { total, columns, lines } }: { view: PreviewView }) {
  const header: PreviewLine[] = columns.length > 0 ? [{ change: 'same', cells: columns, isNew: false }] : []
  return (
    <section aria-label="Preview">
      {total && (
        <p>
          <Line line={total} />
        </p>
      )}
      {[...header, ...lines].map((line, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines of a preview stay in their order
        <div key={index}>
          <Line line={line} />
        </div>
      ))}
    </section>
  )
}

/** An approval request: what would run, the server's message about it, its preview, and the choices. */
export function ApprovalCard({ call }: { call: ToolCallPart }) {
  const { addToolApprovalResponse } = useChatClient()
  const [showsAll, setShowsAll] = useState(false)
  const [reason, setReason] = useState('')
  const [problem, setProblem] = useState<string>()
  const titleId = useId()
  const limits = showsAll ? {} : first
  const view = approvalView(call, {
    ...limits,
    fields: true,
    preview: previewView,
    labels: { deny: 'Deny', once: 'Approve once', session: 'Always (this session)' },
  })
  if (view === undefined) return null
  const answer = async (response: ApprovalResponse) => {
    const denial = response.approved || reason.trim() === '' ? {} : { reason: reason.trim() }
    const result = await addToolApprovalResponse({ ...response, ...denial })
    setProblem(nextStep(result)?.message)
  }
  return (
    <section aria-labelledby={titleId}>
      <h3 id={titleId}>
        <SafeText text={view.title} />
      </h3>
      {view.message && (
        <blockquote>
          The server says: <SafeText text={view.message} />
        </blockquote>
      )}
      {view.preview && <Preview view={view.preview} />}
      <dl>
        {view.arguments?.fields.map(({ key, value }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the fields of one call stay in their order
          <div key={index}>
            <dt>{key ? <SafeText text={key} /> : 'value'}</dt>
            <dd>
              <SafeText text={value} />
            </dd>
          </div>
        ))}
      </dl>
      {view.suspicious && <p role="alert">This request contains hidden or misleading characters.</p>}
      {view.hidden > 0 && (
        <button type="button" onClick={() => setShowsAll(true)}>
          Show all: {view.hidden} more characters
        </button>
      )}
      <fieldset disabled={view.disabled}>
        <legend>Your answer</legend>
        {view.choices.map(({ option, label, disabled, response }) => (
          <button key={option} type="button" disabled={disabled} onClick={() => void answer(response)}>
            {label}
          </button>
        ))}
        <label>
          Reason for a denial
          <input value={reason} onChange={(event) => setReason(event.target.value)} />
        </label>
        <Mandates choices={view.mandates} onAnswer={(response) => void answer(response)} />
      </fieldset>
      <p role="status">{problem ?? nextStep(call)?.message}</p>
    </section>
  )
}
