import { isCountersignError } from '@countersign/core'
import { flagsAt } from '../fold.js'
import { type EntryKind, type Recording, readRecording } from '../form.js'
import { maskRecording } from '../mask.js'
import type { Recorder } from '../recorder.js'
import { type Row, rowAt, rowsOf } from '../rows.js'
import { sourceOf, type TimelineSource } from '../source.js'
import { type Chosen, detailOf } from './detail.js'
import { h } from './dom.js'
import { createList } from './list.js'
import { createToolbar } from './toolbar.js'
import { countOf } from './words.js'

const HINT = 'Choose an entry to see the chat as it was right after it.'

/** The content of the element. It is rendered at most once per frame, however much is recorded. */
export function createView(save: (text: string) => void) {
  let recorder: Recorder | undefined
  let leave: (() => void) | undefined
  let recording: Recording | undefined
  let opened: TimelineSource | undefined
  let hidden: ReadonlySet<EntryKind> = new Set()
  let selected: number | undefined
  let revealed = false
  /** The number of the first entry that is held back while the view is paused. */
  let pausedAt: number | undefined
  let isDue = false
  /** Identifies the displayed detail, which is left alone while it stays the same. */
  let detailed = ''

  const list = createList(select)
  // a key moves among all that is recorded, also when the last entries are not drawn yet
  list.element.addEventListener('keydown', () => isDue && draw(), { capture: true })
  const detail = h('div', { class: 'detail', tabindex: 0, role: 'region', 'aria-label': 'Entry and state' })
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true })
  const toolbar = createToolbar({
    pause() {
      const source = recorder
      pausedAt = pausedAt === undefined && source ? source.cut + source.entries.length : undefined
      draw()
    },
    clear() {
      selected = undefined
      if (pausedAt !== undefined) pausedAt = 0
      recorder?.clear()
      draw()
    },
    reveal() {
      revealed = !revealed
      draw()
    },
    save: () => {
      const shown = recording ?? recorder?.recording({ masked: false })
      if (shown) save(JSON.stringify(revealed ? shown : maskRecording(shown), null, 1))
    },
    open: (file) => void openFile(file),
    back: () => open(undefined),
    toggle(kind) {
      const next = new Set(hidden)
      if (!next.delete(kind)) next.add(kind)
      hidden = next
      draw()
    },
  })

  const element = h(
    'div',
    { class: 'tools', role: 'region', 'aria-label': 'Countersign devtools' },
    toolbar.element,
    problem,
    h('div', { class: 'panes' }, list.element, detail),
  )

  function select(number: number): void {
    selected = number
    draw()
  }

  async function openFile(file: File): Promise<void> {
    try {
      open(readRecording(await file.text()))
    } catch (error) {
      if (!isCountersignError(error)) throw error
      problem.textContent = error.message
      problem.hidden = false
    }
  }

  function open(next: Recording | undefined): void {
    recording = next
    opened = next && sourceOf(next)
    selected = undefined
    problem.hidden = true
    draw()
  }

  function drawSoon(): void {
    if (isDue) return
    isDue = true
    const frame = typeof requestAnimationFrame === 'function' ? requestAnimationFrame : setTimeout
    frame(() => {
      isDue = false
      draw()
    })
  }

  function draw(): void {
    const source = opened ?? recorder
    const { entries, cut } = visible(source, opened ? undefined : pausedAt)
    const rows = rowsOf(entries, cut, hidden)
    const start = entries[0]?.at
    const counts = new Map<EntryKind, number>()
    for (const { kind } of entries) counts.set(kind, (counts.get(kind) ?? 0) + 1)
    toolbar.show({
      title: titleOf(),
      flags: flagsAt(entries, entries.length - 1),
      counts,
      hidden,
      revealed,
      paused: pausedAt !== undefined,
      isRecording: recording !== undefined,
      isMasked: recording?.masked === true,
      hasClient: recorder !== undefined,
    })
    list.show({ rows, selected, revealed, start })
    drawDetail(source, rows, start)
  }

  function drawDetail(
    source: TimelineSource | undefined,
    rows: readonly Row[],
    start: number | undefined,
  ): void {
    const row = selected === undefined ? undefined : rows[rowAt(rows, selected)]
    const key = JSON.stringify([row?.number, revealed, opened ? 'recording' : 'client'])
    if (key === detailed) return
    detailed = key
    const shown =
      row && source ? contentOf(source, { row, revealed, start }) : [h('p', { class: 'muted' }, HINT)]
    detail.replaceChildren(...shown)
  }

  function titleOf(): string {
    const source = opened ?? recorder
    if (!source) return 'No client'
    if (!opened && recorder?.waiting) return 'Recording begins when the open run has ended'
    const count = countOf(source.entries.length, 'entry', 'entries')
    const missing = source.cut > 0 ? `, ${countOf(source.cut, 'earlier one')} gone` : ''
    const name = recording ? 'Recording' : pausedAt === undefined ? 'Live' : 'Paused'
    return `${name}: ${count}${missing}${recording?.masked ? ', masked' : ''}`
  }

  draw()
  return {
    element,
    open,
    get recorder() {
      return recorder
    },
    get recording() {
      return recording
    },
    follow(next: Recorder | undefined): void {
      leave?.()
      recorder?.stop()
      recorder = next
      leave = next?.subscribe(drawSoon)
      selected = undefined
      pausedAt = undefined
      draw()
    },
  }
}

/** The detail of an entry. A file may contain a state that no client can have; the view then says so and keeps working. */
function contentOf(source: TimelineSource, chosen: Omit<Chosen, 'state'>): readonly HTMLElement[] {
  try {
    return detailOf({ ...chosen, state: source.stateAt(chosen.row.index) })
  } catch {
    return [
      h('p', { class: 'failure' }, 'This entry cannot be shown: the recording holds what no chat can be.'),
    ]
  }
}

/** The visible entries: while the view is paused, those from before. */
function visible(
  source: TimelineSource | undefined,
  pausedAt: number | undefined,
): Pick<TimelineSource, 'entries' | 'cut'> {
  if (!source) return { entries: [], cut: 0 }
  const { entries, cut } = source
  return { cut, entries: pausedAt === undefined ? entries : entries.slice(0, Math.max(0, pausedAt - cut)) }
}
