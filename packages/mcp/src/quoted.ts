import { displayText } from '@countersign/core'

/** What is shown of a text that somebody else wrote. */
const MAX_LENGTH = 500

/** Somebody else's words, set apart from ours: in quotes that they cannot end, on one line, with hidden characters made visible. */
export function quoted(text: string): string {
  const { segments, hidden } = displayText(JSON.stringify(text.trim()), {
    multiline: false,
    maxLength: MAX_LENGTH,
  })
  const shown = segments.map((segment) => segment.text).join('')
  return hidden === 0 ? shown : `${shown}" (${hidden} more characters)`
}
