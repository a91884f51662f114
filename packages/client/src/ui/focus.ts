import type { ToolCallPart } from '@countersign/core'
import type { ChatClient } from '../client.js'

/** The id of the dialog's heading, which can receive the focus. */
export const DIALOG_TITLE_ID = 'approval-dialog-title'

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

/**
 * Brings a card, the element that its heading labels, into view and moves the focus to the heading, so that keyboard and screen reader
 * continue there. While the dialog is in front of the cards, its heading gets the focus.
 */
export function focusCard(part: ToolCallPart): void {
  const title = document.getElementById(DIALOG_TITLE_ID)
  if (title) title.focus()
  else {
    document.getElementById(cardHeadingId(part))?.focus({ preventScroll: true })
    showCard(part)
  }
}

/** Pixels for the margins of a card, and for a button that may appear below the conversation. */
const SPARE = 80

/** Brings a card into view without moving the focus; of one that does not fit, its beginning. */
export function showCard(part: ToolCallPart): void {
  const card = elementOf(part)
  card?.scrollIntoView({ block: card.clientHeight + SPARE > roomAround(card) ? 'start' : 'nearest' })
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

/** Moves the focus from a "Show all" button, before it disappears, to the element around it, whose content it shows. */
export function focusWhole({ parentElement }: HTMLElement): void {
  parentElement?.focus({ preventScroll: true })
}

/**
 * A request may close while it has the focus, because it expires or another tab answers it. From now on its heading gets the focus then,
 * which would otherwise fall to the page. Returns a function that ends it.
 */
export function keepFocus(client: Pick<ChatClient, 'getSnapshot' | 'subscribe'>): () => void {
  const requests = () => client.getSnapshot().pendingApprovals
  let before = requests()
  /** The heading of the card that had the focus last; a page may have removed the focused button by then. */
  let labelledBy: string | null | undefined
  const remember = ({ target }: FocusEvent) => {
    labelledBy = target instanceof Element ? cardAround(target)?.getAttribute('aria-labelledby') : undefined
  }
  document.addEventListener('focusin', remember)
  const leave = client.subscribe(() => {
    const now = requests()
    if (now === before) return
    const closed = before.filter(({ approval }) => !now.some((part) => part.approval.id === approval.id))
    before = now
    const { activeElement, body } = document
    const isLost = activeElement === null || activeElement === body || cardAround(activeElement) !== null
    const part = closed.find((one) => cardHeadingId(one) === labelledBy)
    if (part && isLost) document.getElementById(cardHeadingId(part))?.focus({ preventScroll: true })
  })
  return () => {
    document.removeEventListener('focusin', remember)
    leave()
  }
}

const cardAround = (element: Element) => element.closest('[aria-labelledby^="tool-"]')

/** The request to jump to: the one after the focused card, else the first. */
export function nextRequest(pending: readonly ToolCallPart[]): ToolCallPart | undefined {
  const at = pending.findIndex((part) => elementOf(part)?.contains(document.activeElement))
  return pending[(at + 1) % pending.length]
}
