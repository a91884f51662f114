import { argumentFields } from '@countersign/client'
import { displayJson, type ToolCallPart } from '@countersign/core'
import { beginningsOf, effectiveInput, limitsOf, summaryOf } from '@countersign/example-page/arguments'
import { shownDecision } from '@countersign/example-page/decision'
import { cardHeadingId } from '@countersign/example-page/focus'
import { phaseOf } from '@countersign/example-page/phase'
import type { DemoTools } from '@countersign/example-page/tools'
import { standingOf } from '@countersign/example-page/words'
import { useState } from 'react'
import { Approval } from './Approval.js'
import { Arguments } from './Arguments.js'
import { FileListing } from './FileListing.js'
import { Help } from './Help.js'
import { SafeText, Segments } from './SafeText.js'

/** A tool call in any state: its approval request, the decision and the outcome. */
export function ToolCard({ part }: { part: ToolCallPart<DemoTools> }) {
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
        </h3>
        {/* If the arguments are not shown below, the header summarizes them. */}
        {(phase === 'decided' || phase === 'ended') && (
          <span className="tool-summary">{summaryOf(part)}</span>
        )}
        <span className="tool-standing">{label}</span>
      </header>
      <ToolBody part={part} onLate={setLate} />
      {late !== undefined && (
        <p className="tool-late" role="status">
          {late}
        </p>
      )}
    </section>
  )
}

function ToolBody({ part, onLate }: { part: ToolCallPart<DemoTools>; onLate: (told: string) => void }) {
  const phase = phaseOf(part.state)
  switch (phase) {
    case 'arriving':
      return <LiveArguments input={part.input} />
    case 'asked':
      return <Approval part={part} onLate={onLate} />
    case 'decided':
    case 'ended':
      return (
        <>
          <Decision part={part} />
          <Help part={part} />
          {phase === 'ended' && <Failure part={part} />}
          <Details part={part} />
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
  const decision = shownDecision(part)
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

function Details({ part }: { part: ToolCallPart<DemoTools> }) {
  const [expanded, setExpanded] = useState(false)
  return (
    <details className="tool-details">
      <summary>{part.output === undefined ? 'Arguments' : 'Arguments and result'}</summary>
      <Arguments
        {...argumentFields(effectiveInput(part), limitsOf(expanded))}
        expanded={expanded}
        onExpand={() => setExpanded(true)}
      />
      <Result part={part} />
    </details>
  )
}

function Result({ part }: { part: ToolCallPart<DemoTools> }) {
  if (part.output === undefined) return null
  return part.name === 'list_files' ? <FileListing listing={part.output} /> : <Output value={part.output} />
}

function Output({ value }: { value: unknown }) {
  const [expanded, setExpanded] = useState(false)
  const shown = displayJson(value, expanded ? {} : { maxLength: 1500 })
  return (
    <div className="tool-output">
      <p className="tool-label">Result</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <pre className="code-block" tabIndex={0}>
        <Segments shown={shown} />
      </pre>
      {shown.hidden > 0 && (
        <button type="button" className="button link" onClick={() => setExpanded(true)}>
          Show {shown.hidden.toLocaleString('en')} more characters
        </button>
      )}
    </div>
  )
}
