import type { ToolCallPart } from '@countersign/core'

export const COMPOSER_ID = 'composer-input'

/**
 * Where the focus goes when the button that had it goes away. Not on a touch screen: there it would open the keyboard over what the
 * person came to read.
 */
export function focusComposer(): void {
  if (matchMedia('(pointer: fine)').matches) document.getElementById(COMPOSER_ID)?.focus()
}

/** Call ids come from a model: two turns may use the same one, the approval's id is the server's own. */
export function cardHeadingId(part: ToolCallPart): string {
  return `tool-${part.approval?.id ?? part.id}`
}

/** Brings a card into view and moves the focus to its heading, so that keyboard and screen reader go on from there. */
export function focusCard(part: ToolCallPart): void {
  document.getElementById(cardHeadingId(part))?.focus({ preventScroll: true })
  showCard(part)
}

/** Brings a card into view and leaves the focus where it is. */
export function showCard(part: ToolCallPart): void {
  document.getElementById(cardHeadingId(part))?.closest('.tool')?.scrollIntoView({ block: 'nearest' })
}

/** Moves the focus to the first field that has a fault. Call it once they are marked. */
export function focusFirstInvalid(form: HTMLElement): void {
  form.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus()
}

/** The request to jump to: the one after the card that has the focus, else the first. */
export function nextRequest(pending: readonly ToolCallPart[]): ToolCallPart | undefined {
  const focused = document.activeElement?.closest('.tool')?.querySelector('.tool-name')?.id
  const at = pending.findIndex((part) => cardHeadingId(part) === focused)
  return pending[(at + 1) % pending.length]
}
