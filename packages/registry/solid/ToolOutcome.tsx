import { decisionOf } from '@countersign/client/ui'
import type { ToolCallPart } from '@countersign/core'
import { useChatClient } from '@countersign/solid'
import { Show } from 'solid-js'
import { SafeText } from './SafeText.js'

/** What the user decided, and why. */
export function Decision(props: { part: ToolCallPart }) {
  const client = useChatClient()
  return (
    <Show when={decisionOf(props.part, client().getSnapshot().messages)}>
      {(decision) => (
        <p class="tool-decision">
          {decision()}
          <Show when={props.part.approval?.reason} fallback=".">
            {(reason) => (
              <>
                : <q>{reason()}</q>
              </>
            )}
          </Show>
        </p>
      )}
    </Show>
  )
}

/** The server's error message. */
export function Failure(props: { part: ToolCallPart }) {
  const isDenial = () => props.part.state === 'denied' && props.part.approval?.approved === false
  return (
    <Show when={!isDenial() && props.part.error}>
      {(error) => (
        <p class="tool-failure">
          <SafeText text={error().message} />
        </p>
      )}
    </Show>
  )
}
