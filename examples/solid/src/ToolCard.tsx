import { argumentFields } from '@countersign/client'
import type { ToolCallPart } from '@countersign/core'
import { beginningsOf, limitsOf, summaryOf } from '@countersign/example-page/arguments'
import { cardHeadingId } from '@countersign/example-page/focus'
import { phaseOf } from '@countersign/example-page/phase'
import type { DemoTools } from '@countersign/example-page/tools'
import { standingOf } from '@countersign/example-page/words'
import { createMemo, createSignal, Match, Show, Switch } from 'solid-js'
import { Approval } from './Approval.js'
import { Arguments } from './Arguments.js'
import { Help } from './Help.js'
import { SafeText } from './SafeText.js'
import { ToolDetails } from './ToolDetails.js'
import { Decision, Failure } from './ToolOutcome.js'

/** A tool call in any state: its approval request, the decision and the outcome. */
export function ToolCard(props: { part: ToolCallPart<DemoTools> }) {
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
        <Match when={phase() === 'asked' && props.part.approval}>
          {(approval) => <Approval part={props.part} approval={approval()} onLate={setLate} />}
        </Match>
        <Match when={phase() === 'decided' || isOver()}>
          <Decision part={props.part} />
          <Help part={props.part} />
          <Show when={isOver()}>
            <Failure part={props.part} />
          </Show>
          <ToolDetails part={props.part} />
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
