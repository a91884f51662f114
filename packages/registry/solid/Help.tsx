import { helpFor } from '@countersign/client/ui'
import type { ToolCallPart } from '@countersign/core'
import { useChatClient } from '@countersign/solid'
import { Show } from 'solid-js'

/** What happened to an answer that was refused or did not arrive, and what helps. Empty if all is well. */
export function Help(props: { part: ToolCallPart }) {
  const client = useChatClient()
  return (
    <Show when={helpFor(client(), props.part)}>
      {(help) => (
        <p class="tool-failure">
          {help().message}{' '}
          <Show when={help().action}>
            {(action) => (
              <button type="button" class="button link" onClick={() => action().run()}>
                {action().label}
              </button>
            )}
          </Show>
        </p>
      )}
    </Show>
  )
}
