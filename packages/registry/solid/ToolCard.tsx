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
  withRecord,
} from '@countersign/client/ui'
import type { ToolCallPart } from '@countersign/core'
import { useChatClient } from '@countersign/solid'
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
  const client = useChatClient()
  const part = createMemo(() => withRecord(props.part, client().getSnapshot().messages))
  const phase = createMemo(() => phaseOf(part().state))
  const isOver = () => phase() === 'ended'
  // Set if the answer came too late. It is kept here because the request is gone by then.
  const [late, setLate] = createSignal<string>()
  return (
    <section
      class="tool"
      data-state={part().state}
      data-tone={standingOf(part()).tone}
      aria-labelledby={cardHeadingId(part())}
    >
      <header class="tool-header">
        <h3 class="tool-name" id={cardHeadingId(part())} tabIndex={-1}>
          <SafeText text={part().name} />
          <Show when={phase() === 'asked'}>
            <span class="visually-hidden"> {briefOf(part())}</span>
          </Show>
        </h3>
        {/* If the arguments are not shown below, the header summarizes them. */}
        <Show when={phase() === 'decided' || isOver()}>
          <span class="tool-summary">{summaryOf(part())}</span>
        </Show>
        <span class="tool-standing">{standingOf(part()).label}</span>
      </header>
      <Switch>
        <Match when={phase() === 'arriving'}>
          <div class="tool-live" aria-busy="true">
            <Arguments {...argumentFields(beginningsOf(part().input), limitsOf(false))} />
          </div>
        </Match>
        <Match when={phase() === 'asked'}>
          <ApprovalCard part={part()} edits={props.edits} onLate={setLate} />
        </Match>
        <Match when={phase() === 'decided' || isOver()}>
          <Decision part={part()} />
          <Help part={part()} />
          <Show when={isOver()}>
            <Failure part={part()} />
          </Show>
          <ToolDetails part={part()} result={props.result} />
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
