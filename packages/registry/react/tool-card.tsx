'use client'

import { argumentFields } from '@countersign/client'
import {
  beginningsOf,
  briefOf,
  cardHeadingId,
  decisionOf,
  type EditSettings,
  effectiveInput,
  focusWhole,
  limitsOf,
  phaseOf,
  standingOf,
  summaryOf,
  withRecord,
} from '@countersign/client/ui'
import { displayJson, type ToolCallPart } from '@countersign/core'
import { useChatClient } from '@countersign/react'
import { type ReactNode, useState } from 'react'
import { ApprovalCard } from './approval-card'
import { Arguments } from './arguments'
import { Help } from './help'
import { SafeText, Segments } from './safe-text'

interface ToolCardProps {
  part: ToolCallPart
  /** Which edits fit, and where they are previewed. Default: both are left to the server. */
  edits?: EditSettings | undefined
  /** Shows the result. Default: as JSON. */
  result?: ReactNode
}

/** A tool call in any state: its approval request, the decision and the outcome. */
export function ToolCard({ part: given, edits, result }: ToolCardProps) {
  const part = withRecord(given, useChatClient().getSnapshot().messages)
  const { label, tone } = standingOf(part)
  const phase = phaseOf(part.state)
  // Set if the answer came too late. It is kept here because the request is gone by then.
  const [late, setLate] = useState<string>()
  const headingId = cardHeadingId(part)
  return (
    <section className="tool" data-state={part.state} data-tone={tone} aria-labelledby={headingId}>
      <header className="tool-header">
        <h3 className="tool-name" id={headingId} tabIndex={-1}>
          <SafeText text={part.name} />
          {phase === 'asked' && <span className="visually-hidden"> {briefOf(part)}</span>}
        </h3>
        {/* If the arguments are not shown below, the header summarizes them. */}
        {(phase === 'decided' || phase === 'ended') && (
          <span className="tool-summary">{summaryOf(part)}</span>
        )}
        <span className="tool-standing">{label}</span>
      </header>
      <ToolBody part={part} edits={edits} result={result} onLate={setLate} />
      {late !== undefined && (
        <p className="tool-late" role="status">
          {late}
        </p>
      )}
    </section>
  )
}

function ToolBody({
  part,
  edits,
  result,
  onLate,
}: ToolCardProps & { onLate: (told: string | undefined) => void }) {
  const phase = phaseOf(part.state)
  switch (phase) {
    case 'arriving':
      return <LiveArguments input={part.input} />
    case 'asked':
      return <ApprovalCard part={part} edits={edits} onLate={onLate} />
    case 'decided':
    case 'ended':
      return (
        <>
          <Decision part={part} />
          <Help part={part} />
          {phase === 'ended' && <Failure part={part} />}
          <Details part={part} result={result} />
        </>
      )
    default:
      return phase satisfies never
  }
}

function LiveArguments({ input }: { input: unknown }) {
  return (
    <div className="tool-live" aria-busy="true">
      <Arguments {...argumentFields(beginningsOf(input), limitsOf(false))} />
    </div>
  )
}

function Decision({ part }: { part: ToolCallPart }) {
  const decision = decisionOf(part, useChatClient().getSnapshot().messages)
  if (decision === undefined) return null
  return (
    <p className="tool-decision">
      {decision}
      {part.approval?.reason ? (
        <>
          : <q>{part.approval.reason}</q>
        </>
      ) : (
        '.'
      )}
    </p>
  )
}

/** The server's error message. */
function Failure({ part }: { part: ToolCallPart }) {
  const isDenial = part.state === 'denied' && part.approval?.approved === false
  if (isDenial || !part.error) return null
  return (
    <p className="tool-failure">
      <SafeText text={part.error.message} />
    </p>
  )
}

function Details({ part, result }: Pick<ToolCardProps, 'part' | 'result'>) {
  const [expanded, setExpanded] = useState(false)
  return (
    <details className="tool-details">
      <summary>{part.output === undefined ? 'Arguments' : 'Arguments and result'}</summary>
      <Arguments
        {...argumentFields(effectiveInput(part), limitsOf(expanded))}
        expanded={expanded}
        onExpand={() => setExpanded(true)}
      />
      {part.output !== undefined && (result ?? <Output value={part.output} />)}
    </details>
  )
}

function Output({ value }: { value: unknown }) {
  const [expanded, setExpanded] = useState(false)
  const shown = displayJson(value, expanded ? {} : { maxLength: 1500 })
  return (
    <div className="tool-output" tabIndex={-1}>
      <p className="tool-label">Result</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <pre className="code-block" tabIndex={0}>
        <Segments shown={shown} />
      </pre>
      {shown.hidden > 0 && (
        <button
          type="button"
          className="button link"
          onClick={({ currentTarget }) => {
            focusWhole(currentTarget)
            setExpanded(true)
          }}
        >
          Show {shown.hidden.toLocaleString('en')} more characters
        </button>
      )}
    </div>
  )
}
