import type { EntryKind, Flags } from '../form.js'
import { flagChips } from './detail.js'
import { button, h, setAttribute, setText } from './dom.js'
import { kindNames } from './words.js'

/** The actions of the toolbar. */
export interface ToolbarActions {
  pause(): void
  clear(): void
  reveal(): void
  save(): void
  open(file: File): void
  /** Returns from a recording to the client. */
  back(): void
  toggle(kind: EntryKind): void
}

/** The state that the toolbar shows. */
export interface Standing {
  readonly title: string
  readonly flags: Flags
  readonly counts: ReadonlyMap<EntryKind, number>
  readonly hidden: ReadonlySet<EntryKind>
  readonly paused: boolean
  readonly revealed: boolean
  /** Whether a recording is shown instead of a client. */
  readonly isRecording: boolean
  /** Whether the values were masked, so that they cannot be revealed. */
  readonly isMasked: boolean
  readonly hasClient: boolean
}

export function createToolbar(actions: ToolbarActions) {
  const title = h('span', { class: 'title', role: 'status' })
  const flags = h('span', { class: 'flags' })
  const file = h('input', {
    type: 'file',
    accept: 'application/json,.json',
    hidden: true,
    'aria-label': 'Recording',
  })
  file.addEventListener('change', () => {
    const [chosen] = file.files ?? []
    if (chosen) actions.open(chosen)
    // Allows the same file to be chosen again.
    file.value = ''
  })
  const pause = button(
    'Pause',
    { 'aria-pressed': 'false', title: 'Holds the view still; recording goes on' },
    actions.pause,
  )
  const clear = button('Clear', {}, actions.clear)
  const back = button('Back to the chat', {}, actions.back)
  const save = button('Export', {}, actions.save)
  const reveal = button('Show values', { 'aria-pressed': 'false' }, actions.reveal)
  const kinds = Object.keys(kindNames) as EntryKind[]
  const filters = kinds.map((kind) => {
    const count = h('span', { class: 'number' })
    const filter = button(kindNames[kind].many, { class: 'filter', 'data-kind': kind }, () =>
      actions.toggle(kind),
    )
    filter.append(' ', count)
    return { kind, filter, count }
  })

  return {
    element: h(
      'header',
      { class: 'bar' },
      h('div', { class: 'bar-row' }, title, flags),
      h(
        'div',
        { class: 'bar-row', role: 'toolbar', 'aria-label': 'Recording' },
        pause,
        clear,
        save,
        button('Import', {}, () => file.click()),
        file,
        reveal,
        back,
      ),
      h(
        'div',
        { class: 'bar-row', role: 'group', 'aria-label': 'Shown kinds' },
        ...filters.map(({ filter }) => filter),
      ),
    ),

    show(standing: Standing): void {
      setText(title, standing.title)
      if (flags.dataset.shown !== JSON.stringify(standing.flags)) {
        flags.dataset.shown = JSON.stringify(standing.flags)
        flags.replaceChildren(...flagChips(standing.flags))
      }
      setAttribute(pause, 'aria-pressed', String(standing.paused))
      setAttribute(reveal, 'aria-pressed', String(standing.revealed))
      const exported = standing.revealed
        ? 'Saves the recording with all values'
        : 'Saves the recording, secrets masked'
      setAttribute(save, 'title', exported)
      reveal.hidden = standing.isMasked
      pause.hidden = standing.isRecording
      clear.hidden = standing.isRecording
      back.hidden = !(standing.isRecording && standing.hasClient)
      for (const { kind, filter, count } of filters) {
        setAttribute(filter, 'aria-pressed', String(!standing.hidden.has(kind)))
        setText(count, String(standing.counts.get(kind) ?? 0))
      }
    },
  }
}
