import type { ToolCallPart } from '@countersign/core'

export const COMPOSER_ID = 'composer-input'

/**
 * Where the focus goes when the focused button disappears. Not on a touch screen, where it would open the
 * keyboard over the content.
 */
export function focusComposer(): void {
  if (matchMedia('(pointer: fine)').matches) document.getElementById(COMPOSER_ID)?.focus()
}

/** Prefers the approval id, which the server assigns: call ids come from a model, so two turns may use the same one. */
export function cardHeadingId(part: ToolCallPart): string {
  return `tool-${part.approval?.id ?? part.id}`
}

/** Brings a card into view and moves the focus to its heading, so that keyboard and screen reader continue there. */
export function focusCard(part: ToolCallPart): void {
  document.getElementById(cardHeadingId(part))?.focus({ preventScroll: true })
  showCard(part)
}

/** Brings a card into view without moving the focus; of one that does not fit, its beginning. */
export function showCard(part: ToolCallPart): void {
  const card = document.getElementById(cardHeadingId(part))?.closest('.tool')
  const room = card?.closest('.chat-scroll')?.clientHeight ?? 0
  card?.scrollIntoView({ block: card.clientHeight > room ? 'start' : 'nearest' })
}

/** Moves the focus to the first invalid field. Call it once the fields are marked. */
export function focusFirstInvalid(form: HTMLElement): void {
  form.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus()
}

/** Moves the focus to the first field of a button's form, before the button disappears. */
export function focusFirstField({ form }: HTMLButtonElement): void {
  form?.querySelector<HTMLElement>('textarea:not([readonly])')?.focus()
}

/** The request to jump to: the one after the focused card, else the first. */
export function nextRequest(pending: readonly ToolCallPart[]): ToolCallPart | undefined {
  const focused = document.activeElement?.closest('.tool')?.querySelector('.tool-name')?.id
  const at = pending.findIndex((part) => cardHeadingId(part) === focused)
  return pending[(at + 1) % pending.length]
}
