import { argumentFields } from '@countersign/client'
import { displayJson, type ToolCallPart } from '@countersign/core'
import { effectiveInput, limitsOf } from '@countersign/example-page/arguments'
import type { DemoTools } from '@countersign/example-page/tools'
import { createMemo, createSignal, Show } from 'solid-js'
import { Arguments } from './Arguments.js'
import { FileListing } from './FileListing.js'
import { Segments } from './SafeText.js'

/** The arguments that ran, and what came of them. */
export function ToolDetails(props: { part: ToolCallPart<DemoTools> }) {
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
        <Show when={listingOf(props.part)} fallback={<Output value={props.part.output} />}>
          {(listing) => <FileListing listing={listing()} />}
        </Show>
      </Show>
    </details>
  )
}

function listingOf(part: ToolCallPart<DemoTools>) {
  return part.name === 'list_files' ? part.output : undefined
}

function Output(props: { value: unknown }) {
  const [expanded, setExpanded] = createSignal(false)
  const shown = createMemo(() => displayJson(props.value, expanded() ? {} : { maxLength: 1500 }))
  return (
    <div class="tool-output">
      <p class="tool-label">Result</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <pre class="code-block" tabIndex={0}>
        <Segments shown={shown()} />
      </pre>
      <Show when={shown().hidden > 0}>
        <button type="button" class="button link" onClick={() => setExpanded(true)}>
          Show {shown().hidden.toLocaleString('en')} more characters
        </button>
      </Show>
    </div>
  )
}
