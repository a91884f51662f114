import { markOf } from '@countersign/client/ui'
import { type DisplayText, displayText } from '@countersign/core'
import { Index } from 'solid-js'

/** Text from a model or a server: hidden and misleading characters are written out, and nothing can become markup. */
export function SafeText(props: { text: string }) {
  return <Segments shown={displayText(props.text)} />
}

/** The segments of a text, each with its own direction. */
export function Segments(props: { shown: DisplayText }) {
  return (
    <Index each={props.shown.segments}>
      {(segment) => (
        <bdi class={segment().type === 'text' ? undefined : segment().type} title={markOf(segment())}>
          {segment().text}
        </bdi>
      )}
    </Index>
  )
}
