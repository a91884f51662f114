import type { ToolCallPart } from '@countersign/core'
import { decisionOf, problemOf } from '@countersign/example-page/words'
import { useChatClient } from '@countersign/solid'
import { Show } from 'solid-js'
import { SafeText } from './SafeText.js'

/** What the person decided, and why. */
export function Decision(props: { part: ToolCallPart }) {
  return (
    <Show when={decisionOf(props.part)}>
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

/** The server could not take the answer just now: it stands, and can be sent again. */
export function Undelivered(props: { part: ToolCallPart }) {
  const client = useChatClient()
  return (
    <Show when={props.part.approval?.problem}>
      {(problem) => (
        <p class="tool-failure">
          {problemOf(problem())}{' '}
          <button type="button" class="button link" onClick={() => void client().retry()}>
            Retry
          </button>
        </p>
      )}
    </Show>
  )
}

/** What went wrong. */
export function Failure(props: { part: ToolCallPart }) {
  const isDenial = () => props.part.state === 'denied' && props.part.approval?.approved === false
  return (
    <Show when={!isDenial() && (props.part.approval?.problem || props.part.error)}>
      <div class="tool-failure">
        <Show when={props.part.approval?.problem}>{(problem) => <p>{problemOf(problem())}</p>}</Show>
        <Show when={props.part.error}>
          {(error) => (
            <p>
              <SafeText text={error().message} />
            </p>
          )}
        </Show>
      </div>
    </Show>
  )
}
