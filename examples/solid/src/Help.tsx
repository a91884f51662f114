import type { ToolCallPart } from '@countersign/core'
import { helpFor } from '@countersign/example-page/next-step'
import { Show } from 'solid-js'

/** What happened to an answer that was refused or did not arrive, and what helps. Empty if all is well. */
export function Help(props: { part: ToolCallPart }) {
  return (
    <Show when={helpFor(props.part)}>
      {(help) => (
        <p class="tool-failure">
          {help().message}{' '}
          <Show when={help().action}>
            {(action) => (
              <button type="button" class="button link" onClick={() => action().act()}>
                {action().label}
              </button>
            )}
          </Show>
        </p>
      )}
    </Show>
  )
}
