import { displayText } from '@countersign/core'

/** The maximum length of quoted text. */
const MAX_LENGTH = 500

/** Quotes text from somebody else, distinct from ours: in quotes that it can't end, on one line, with hidden characters made visible. */
export function quoted(text: string): string {
  const { segments, hidden } = displayText(JSON.stringify(text.trim()), {
    multiline: false,
    maxLength: MAX_LENGTH,
  })
  const shown = segments.map((segment) => segment.text).join('')
  return hidden === 0 ? shown : `${shown}" (${hidden} more characters)`
}
