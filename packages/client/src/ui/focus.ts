import type { ToolCallPart } from '@countersign/core'

/** The message input has this id, so that the focus finds it. */
export const COMPOSER_ID = 'composer-input'

/**
 * Where the focus goes when the focused button disappears. Not on a touch screen, where it would open the
 * keyboard over the content.
 */
export function focusComposer(): void {
  if (matchMedia('(pointer: fine)').matches) document.getElementById(COMPOSER_ID)?.focus()
}

/** The id of a card's heading. Prefers the approval id, which the server assigns: call ids come from a model, so two turns may use the same one. */
export function cardHeadingId(part: ToolCallPart): string {
  return `tool-${part.approval?.id ?? part.id}`
}

/** Brings a card, the element that its heading labels, into view and moves the focus to the heading, so that keyboard and screen reader continue there. */
export function focusCard(part: ToolCallPart): void {
  document.getElementById(cardHeadingId(part))?.focus({ preventScroll: true })
  showCard(part)
}

/** Brings a card into view without moving the focus; of one that does not fit, its beginning. */
export function showCard(part: ToolCallPart): void {
  const card = elementOf(part)
  card?.scrollIntoView({ block: card.clientHeight > roomAround(card) ? 'start' : 'nearest' })
}

/** The card is the element that its heading labels. */
function elementOf(part: ToolCallPart): Element | null | undefined {
  const id = cardHeadingId(part)
  return document.getElementById(id)?.closest(`[aria-labelledby="${CSS.escape(id)}"]`)
}

/** The height of what scrolls around an element, which may be the page. */
function roomAround({ parentElement }: Element): number {
  if (parentElement === null) return innerHeight
  const scrolls = /auto|scroll/.test(getComputedStyle(parentElement).overflowY)
  return scrolls ? parentElement.clientHeight : roomAround(parentElement)
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
  const at = pending.findIndex((part) => elementOf(part)?.contains(document.activeElement))
  return pending[(at + 1) % pending.length]
}
