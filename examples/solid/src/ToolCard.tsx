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

/** A tool call in any state: what is asked, what was decided, what came of it. */
export function ToolCard(props: { part: ToolCallPart<DemoTools> }) {
  const phase = createMemo(() => phaseOf(props.part.state))
  const isOver = () => phase() === 'ended'
  // The answer came too late: the request it was given to is gone by the time this is known.
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
        {/* Where the arguments are not spread out below, the header tells them in a few words. */}
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
