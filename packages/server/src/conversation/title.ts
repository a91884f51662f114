import type { Message } from '@countersign/core'

const MAX_LENGTH = 80

/** The beginning of what the user said first, on one line; undefined if that is no text. */
export function titleOf(messages: readonly Message[]): string | undefined {
  for (const { role, content } of messages) {
    if (role !== 'user') continue
    const parts = Array.isArray(content) ? content : [{ type: 'text', text: content }]
    const texts = parts.flatMap((part) =>
      'text' in part && typeof part.text === 'string' ? [part.text] : [],
    )
    const line = texts
      .join(' ')
      .slice(0, 10 * MAX_LENGTH)
      .replace(/\s+/g, ' ')
      .trim()
    const letters = Array.from(line)
    if (letters.length > 0)
      return letters.length > MAX_LENGTH
        ? `${letters
            .slice(0, MAX_LENGTH - 1)
            .join('')
            .trimEnd()}…`
        : line
  }
  return undefined
}
