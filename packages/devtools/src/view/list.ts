import { displayText } from '@countersign/core'
import { maskEntry } from '../mask.js'
import { printEntry, printNews } from '../print.js'
import { type Row, rowAt } from '../rows.js'
import { h, setAttribute, setText } from './dom.js'
import { kindNames, sinceStart } from './words.js'

/** The height of a row in pixels, as in the style sheet. */
const ROW_HEIGHT = 26
/** Rows rendered above and below the visible ones. */
const MARGIN = 8
/** Used before layout. */
const LEAST_HEIGHT = 400

export interface Listing {
  readonly rows: readonly Row[]
  /** The number of the selected entry. */
  readonly selected: number | undefined
  readonly revealed: boolean
  /** The time of the first entry. */
  readonly start: number | undefined
}

/** The timeline as a list box. However long it is, only visible rows are elements. */
export function createList(onSelect: (number: number) => void) {
  const holder = h('div', { class: 'rows', role: 'presentation' })
  const box = h('div', { class: 'list', role: 'listbox', tabindex: 0, 'aria-label': 'Timeline' }, holder)
  const shown = new Map<number, HTMLElement>()
  let listing: Listing = { rows: [], selected: undefined, revealed: false, start: undefined }
  let atEnd = true

  const height = () => box.clientHeight || LEAST_HEIGHT
  const selectedRow = () => (listing.selected === undefined ? -1 : rowAt(listing.rows, listing.selected))

  box.addEventListener('scroll', () => {
    atEnd = box.scrollTop + height() >= listing.rows.length * ROW_HEIGHT - ROW_HEIGHT
    draw()
  })
  box.addEventListener('click', ({ target }) => {
    const row = target instanceof Element ? target.closest<HTMLElement>('[data-number]') : null
    if (row) onSelect(Number(row.dataset.number))
  })
  box.addEventListener('keydown', (event) => {
    const to = target(event.key)
    const row =
      to === undefined ? undefined : listing.rows[Math.min(Math.max(to, 0), listing.rows.length - 1)]
    if (!row || event.altKey || event.ctrlKey || event.metaKey) return
    event.preventDefault()
    onSelect(row.number)
  })

  function target(key: string): number | undefined {
    const at = selectedRow()
    const page = Math.max(1, Math.floor(height() / ROW_HEIGHT) - 1)
    switch (key) {
      case 'ArrowDown':
        return at + 1
      case 'ArrowUp':
        return at < 0 ? listing.rows.length - 1 : at - 1
      case 'PageDown':
        return at + page
      case 'PageUp':
        return at - page
      case 'Home':
        return 0
      case 'End':
        return listing.rows.length - 1
      default:
        return undefined
    }
  }

  function draw(): void {
    const { rows } = listing
    const first = Math.max(0, Math.floor(box.scrollTop / ROW_HEIGHT) - MARGIN)
    const last = Math.min(rows.length, Math.ceil((box.scrollTop + height()) / ROW_HEIGHT) + MARGIN)
    const wanted = new Map(rows.slice(first, last).map((row, offset) => [row.number, first + offset]))
    for (const [number, element] of shown) {
      if (wanted.has(number)) continue
      element.remove()
      shown.delete(number)
    }
    for (const [number, at] of wanted) {
      const row = rows[at]
      if (!row) continue
      const element = shown.get(number) ?? create(number)
      update(element, row, at)
    }
  }

  function create(number: number): HTMLElement {
    const parts = ['time', 'run', 'kind', 'text', 'count'].map((name) => h('span', { class: name }))
    const element = h(
      'div',
      { class: 'row', role: 'option', id: `entry-${number}`, 'data-number': number },
      ...parts,
    )
    shown.set(number, element)
    holder.append(element)
    return element
  }

  function update(element: HTMLElement, row: Row, at: number): void {
    const { entry, run, count } = row
    const [time, badge, kind, text, times] = element.children
    if (!time || !badge || !kind || !text || !times) return
    const isSelected = at === selectedRow()
    element.style.transform = `translateY(${at * ROW_HEIGHT}px)`
    setAttribute(element, 'data-kind', entry.kind)
    setAttribute(element, 'data-lane', String(run % 6))
    setAttribute(element, 'aria-selected', String(isSelected))
    setAttribute(element, 'aria-setsize', String(listing.rows.length))
    setAttribute(element, 'aria-posinset', String(at + 1))
    setText(time, sinceStart(entry.at, listing.start))
    setText(badge, run === 0 ? '' : String(run))
    setText(kind, kindNames[entry.kind].one)
    setText(text, textOf(row, listing.revealed))
    setText(times, count > 1 ? `×${count}` : '')
  }

  return {
    element: box,
    show(next: Listing): void {
      const moved = next.selected !== listing.selected
      listing = next
      holder.style.height = `${next.rows.length * ROW_HEIGHT}px`
      const at = selectedRow()
      if (moved && at >= 0) scrollTo(at)
      else if (atEnd && at < 0) box.scrollTop = next.rows.length * ROW_HEIGHT
      draw()
      const row = at < 0 ? undefined : next.rows[at]
      if (row && shown.has(row.number)) setAttribute(box, 'aria-activedescendant', `entry-${row.number}`)
      else box.removeAttribute('aria-activedescendant')
    },
  }

  function scrollTo(at: number): void {
    const top = at * ROW_HEIGHT
    if (top < box.scrollTop) box.scrollTop = top
    else if (top + ROW_HEIGHT > box.scrollTop + height()) box.scrollTop = top + ROW_HEIGHT - height()
  }
}

function textOf({ entry, stateBefore }: Row, revealed: boolean): string {
  const said =
    entry.kind === 'state'
      ? printNews(entry.text, stateBefore)
      : printEntry(revealed ? entry : maskEntry(entry))
  return displayText(shortIds(said), { multiline: false, maxLength: 240 }).text
}

/** Shortens long ids; the detail shows them in full. */
function shortIds(text: string): string {
  return text.replace(/[\w-]{20,}/g, (word) => (/\d/.test(word) ? `${word.slice(0, 12)}…` : word))
}
