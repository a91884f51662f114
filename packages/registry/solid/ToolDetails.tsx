import { argumentFields } from '@countersign/client'
import { effectiveInput, focusWhole, limitsOf } from '@countersign/client/ui'
import { displayJson, type ToolCallPart } from '@countersign/core'
import { children, createMemo, createSignal, type JSX, Show } from 'solid-js'
import { Arguments } from './Arguments.js'
import { Segments } from './SafeText.js'

/** The arguments that ran, and what came of them. */
export function ToolDetails(props: { part: ToolCallPart; result?: JSX.Element }) {
  const result = children(() => props.result)
  const [expanded, setExpanded] = createSignal(false)
  const hasOutput = () => props.part.output !== undefined
  return (
    <details class="tool-details">
      <summary>{hasOutput() ? 'Arguments and result' : 'Arguments'}</summary>
      <Arguments
        {...argumentFields(effectiveInput(props.part), limitsOf(expanded()))}
        expanded={expanded()}
        onExpand={() => setExpanded(true)}
      />
      <Show when={hasOutput()}>
        <Show when={result()} fallback={<Output value={props.part.output} />}>
          {result()}
        </Show>
      </Show>
    </details>
  )
}

function Output(props: { value: unknown }) {
  const [expanded, setExpanded] = createSignal(false)
  const shown = createMemo(() => displayJson(props.value, expanded() ? {} : { maxLength: 1500 }))
  return (
    <div class="tool-output" tabIndex={-1}>
      <p class="tool-label">Result</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <pre class="code-block" tabIndex={0}>
        <Segments shown={shown()} />
      </pre>
      <Show when={shown().hidden > 0}>
        <button
          type="button"
          class="button link"
          onClick={({ currentTarget }) => {
            focusWhole(currentTarget)
            setExpanded(true)
          }}
        >
          Show {shown().hidden.toLocaleString('en')} more characters
        </button>
      </Show>
    </div>
  )
}
