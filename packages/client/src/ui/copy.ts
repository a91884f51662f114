import type { MessagePart } from '@countersign/core'

/** How long a button says how the copying went (ms). */
const SHOWN = 2000

/** The text of a message or turn, to copy it. */
export function textToCopy(parts: readonly MessagePart[]): string {
  return parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n\n')
}

/** Copies a text. `say` is called with what the button says: how that went, and then `label` again. */
export async function copyText(text: string, label: string, say: (words: string) => void): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
    say('Copied')
  } catch {
    // not allowed, or the page is not served over HTTPS
    say('Could not copy')
  }
  setTimeout(() => say(label), SHOWN)
}
