import type { DisplayText } from '@countersign/core'

/** The warning for a segment of text that hides or misleads; `undefined` for plain text. */
export function markOf(segment: DisplayText['segments'][number]): string | undefined {
  switch (segment.type) {
    case 'text':
      return undefined
    case 'escaped':
      return 'An invisible character, written out'
    case 'blank':
      return 'A long run of blanks, counted'
    case 'mixed-script':
      return `This word mixes ${segment.scripts.join(' and ')} letters`
    default:
      return segment satisfies never
  }
}
