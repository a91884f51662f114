import { type DisplayText, displayText } from '@countersign/core'

/** Text from a model or a server: characters that hide or mislead are written out, and nothing can become markup. */
export function SafeText({ text }: { text: string }) {
  return <Segments shown={displayText(text)} />
}

/** The pieces of a text, each isolated in its direction. */
export function Segments({ shown }: { shown: DisplayText }) {
  return shown.segments.map((segment, index) => {
    const key = index
    switch (segment.type) {
      case 'text':
        return <bdi key={key}>{segment.text}</bdi>
      case 'escaped':
        return (
          <bdi key={key} className="escaped" title="An invisible character, written out">
            {segment.text}
          </bdi>
        )
      case 'mixed-script':
        return (
          <bdi
            key={key}
            className="mixed-script"
            title={`This word mixes ${segment.scripts.join(' and ')} letters`}
          >
            {segment.text}
          </bdi>
        )
      default:
        return segment satisfies never
    }
  })
}
