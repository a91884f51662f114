import { displayText } from '@countersign/core'

/** The maximum length of quoted text. */
const MAX_LENGTH = 500

/** To show a text costs by its length, and a server may send any. */
const MAX_READ = 4 * MAX_LENGTH

/** Quotes text from somebody else, distinct from ours: in quotes that it can't end, on one line, with hidden characters made visible. */
export function quoted(text: string): string {
  const all = JSON.stringify(text.trim())
  const { segments, hidden } = displayText(all.slice(0, MAX_READ), {
    multiline: false,
    maxLength: MAX_LENGTH,
  })
  const shown = segments.map((segment) => segment.text).join('')
  const more = hidden + Math.max(0, all.length - MAX_READ)
  return more === 0 ? shown : `${shown}" (${more} more characters)`
}
