import { markOf } from '@countersign/client/ui'
import { type DisplayText, displayText } from '@countersign/core'

/** Text from a model or a server: hidden and misleading characters are written out, and nothing can become markup. */
export function SafeText({ text }: { text: string }) {
  return <Segments shown={displayText(text)} />
}

/** The segments of a text, each with its own direction. */
export function Segments({ shown }: { shown: DisplayText }) {
  return shown.segments.map((segment, index) => (
    <bdi
      // biome-ignore lint/suspicious/noArrayIndexKey: pieces of one text, without a state of their own
      key={index}
      className={segment.type === 'text' ? undefined : segment.type}
      title={markOf(segment)}
    >
      {segment.text}
    </bdi>
  ))
}
