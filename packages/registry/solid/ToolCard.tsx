import { argumentFields } from '@countersign/client'
import {
  beginningsOf,
  briefOf,
  cardHeadingId,
  type EditSettings,
  limitsOf,
  phaseOf,
  standingOf,
  summaryOf,
} from '@countersign/client/ui'
import type { ToolCallPart } from '@countersign/core'
import { createMemo, createSignal, type JSX, Match, Show, Switch } from 'solid-js'
import { ApprovalCard } from './ApprovalCard.js'
import { Arguments } from './Arguments.js'
import { Help } from './Help.js'
import { SafeText } from './SafeText.js'
import { ToolDetails } from './ToolDetails.js'
import { Decision, Failure } from './ToolOutcome.js'

interface ToolCardProps {
  part: ToolCallPart
  /** Which edits fit, and where they are previewed. Default: both are left to the server. */
  edits?: EditSettings | undefined
  /** Shows the result. Default: as JSON. */
  result?: JSX.Element
}

/** A tool call in any state: its approval request, the decision and the outcome. */
export function ToolCard(props: ToolCardProps) {
  const phase = createMemo(() => phaseOf(props.part.state))
  const isOver = () => phase() === 'ended'
  // Set if the answer came too late. It is kept here because the request is gone by then.
  const [late, setLate] = createSignal<string>()
  return (
    <section
      class="tool"
      data-state={props.part.state}
      data-tone={standingOf(props.part).tone}
      aria-labelledby={cardHeadingId(props.part)}
    >
      <header class="tool-header">
        <h3 class="tool-name" id={cardHeadingId(props.part)} tabIndex={-1}>
          <SafeText text={props.part.name} />
          <Show when={phase() === 'asked'}>
            <span class="visually-hidden"> {briefOf(props.part)}</span>
          </Show>
        </h3>
        {/* If the arguments are not shown below, the header summarizes them. */}
        <Show when={phase() === 'decided' || isOver()}>
          <span class="tool-summary">{summaryOf(props.part)}</span>
        </Show>
        <span class="tool-standing">{standingOf(props.part).label}</span>
      </header>
      <Switch>
        <Match when={phase() === 'arriving'}>
          <div class="tool-live" aria-busy="true">
            <Arguments {...argumentFields(beginningsOf(props.part.input), limitsOf(false))} />
          </div>
        </Match>
        <Match when={phase() === 'asked'}>
          <ApprovalCard part={props.part} edits={props.edits} onLate={setLate} />
        </Match>
        <Match when={phase() === 'decided' || isOver()}>
          <Decision part={props.part} />
          <Help part={props.part} />
          <Show when={isOver()}>
            <Failure part={props.part} />
          </Show>
          <ToolDetails part={props.part} result={props.result} />
        </Match>
      </Switch>
      <Show when={late()}>
        <p class="tool-late" role="status">
          {late()}
        </p>
      </Show>
    </section>
  )
}
