import {
  type DisplayLimits,
  type DisplayText,
  displayText,
  type Preview,
  printJson,
  REDACTED,
  readPreview,
} from '@countersign/core'
import { diffLines } from './diff-lines.js'
import { createRoom, type Room } from './room.js'

/** A preview as plain data, for any markup. All texts are safe to show as text, never as markup. */
export interface PreviewView {
  readonly kind: Preview['kind']
  /** What all of it amounts to, such as "2 lines added, 1 line removed in notes.txt", and whether values are masked: show it first. */
  readonly total: PreviewLine | undefined
  /** The columns of a table; otherwise empty. */
  readonly columns: readonly DisplayText[]
  readonly lines: readonly PreviewLine[]
  /** How many characters of all this are not shown. */
  readonly hidden: number
  /** Something in all this, shown or not, is hidden or looks like something else: warn the user. */
  readonly suspicious: boolean
  /** What the user saw before, if approval is requested again because it changed. In it, `isNew` marks what is gone. */
  readonly previous: PreviewView | undefined
}

/** A line of a text or a diff, an item of a list, or a row of a table. */
export interface PreviewLine {
  /** In a diff. `skipped` stands for unchanged lines that are left out, or a missing line end. Otherwise `same`. */
  readonly change: 'same' | 'added' | 'removed' | 'skipped'
  /** One for each column of a table, otherwise one. */
  readonly cells: readonly DisplayText[]
  /** It is not in the preview before: mark it. */
  readonly isNew: boolean
}

/** `maxLength`, `maxLines` and `columns` limit how much is shown. Default: all. */
export interface PreviewViewOptions extends DisplayLimits {
  /** The preview before, for an approval that is requested again (`approval.previous`). */
  readonly previous?: unknown
}

/**
 * What a page shows of a preview, as the server sent it: `approval.preview`, or that of edited arguments. Pass it to
 * `approvalView` as its option `preview`: then nothing can be approved while part of the preview is not shown.
 */
export function previewView(value: unknown, options: PreviewViewOptions = {}): PreviewView {
  const { previous, maxLength, maxLines, columns } = options
  const limits = { maxLength, maxLines, columns }
  const [now, before] = [read(value), previous === undefined ? undefined : read(previous)]
  return {
    ...show(now, limits, before),
    previous: before && { ...show(before, limits, now), previous: undefined },
  }
}

/** A preview of any kind as rows of text. */
interface Table {
  readonly kind: Preview['kind']
  readonly total?: string
  readonly columns?: readonly string[]
  readonly rows: readonly Row[]
}

interface Row {
  readonly change: PreviewLine['change']
  readonly cells: readonly string[]
  /** It says where the next lines are, which may be new. */
  readonly isPlace?: boolean
}

function show(
  { kind, total, columns = [], rows }: Table,
  limits: DisplayLimits,
  other: Table | undefined,
): Omit<PreviewView, 'previous'> {
  const room = createRoom(limits)
  const isKnown = other === undefined ? () => true : takeFrom([...other.rows, totalRow(other)])
  const line = (row: Row): PreviewLine => ({
    change: row.change,
    cells: showCells(row.cells, room),
    isNew: (row.change !== 'skipped' || row.isPlace === true) && !isKnown(row),
  })
  // In the order in which they are shown: earlier ones use up the limits first.
  const first = total === undefined ? undefined : line(totalRow({ total }))
  const heads = showCells(columns, room)
  const lines: PreviewLine[] = []
  for (const [at, row] of rows.entries()) {
    if (room.isFull()) {
      const rest = rows.slice(at).flatMap(({ cells }) => cells)
      // Also a row without any text is not shown.
      room.take(1, (left) => displayText(rest.join('\n') || '\n', left))
      break
    }
    lines.push(line(row))
    // A row without cells occupies a line too.
    if (row.cells.length === 0) room.take(0.5, (limits) => displayText('', limits))
  }
  return { kind, total: first, columns: heads, lines, ...room.found() }
}

const totalRow = ({ total = '' }: Pick<Table, 'total'>): Row => ({ change: 'same', cells: [total] })

/** Whether a row is among these; each of them is found once, so that an equal row more is new. */
function takeFrom(rows: readonly Row[]): (row: Row) => boolean {
  const keyOf = ({ change, cells }: Row) => JSON.stringify([change, cells])
  const left = new Map<string, number>()
  for (const row of rows) left.set(keyOf(row), (left.get(keyOf(row)) ?? 0) + 1)
  return (row) => {
    const key = keyOf(row)
    const count = left.get(key) ?? 0
    left.set(key, count - 1)
    return count > 0
  }
}

/** The cells of a row stand beside each other. Each is in one line: a line end in it could imitate a row. */
const showCells = (cells: readonly string[], room: Room): readonly DisplayText[] =>
  cells.map((cell, at) =>
    room.take(
      0.5,
      (limits) => displayText(cell, { ...limits, multiline: !cell.includes('\n') }),
      at > 0 ? 'beside' : undefined,
    ),
  )

function read(value: unknown): Table {
  const table = readKind(readPreview(value))
  const { total, columns = [], rows } = table
  const texts = [total ?? '', ...columns, ...rows.flatMap(({ cells }) => cells)]
  if (!texts.some((text) => text.includes(REDACTED))) return table
  return { ...table, total: `${total === undefined ? '' : `${total}. `}Some values are masked` }
}

function readKind(preview: Preview): Table {
  const { kind } = preview
  switch (kind) {
    case 'text':
      return { kind, rows: sameRows(preview.text.split('\n')) }
    case 'diff':
      return readDiff(preview)
    case 'list': {
      const { items, total = countOf(items.length, 'item') } = preview
      return { kind, total, rows: sameRows(items) }
    }
    case 'table': {
      const { columns, rows, total = countOf(rows.length, 'row') } = preview
      return { kind, total, columns, rows: rows.map((row) => ({ change: 'same', cells: row.map(String) })) }
    }
    case 'json':
      return {
        kind,
        rows: sameRows(printJson(preview.value, true).split('\n')),
      }
    case 'none':
      return { kind, total: `No preview: ${preview.reason}`, rows: [] }
    default:
      return kind satisfies never
  }
}

const sameRows = (texts: readonly string[]): readonly Row[] =>
  texts.map((text) => ({ change: 'same', cells: [text] }))

function readDiff(preview: Extract<Preview, { kind: 'diff' }>): Table {
  const rows = 'hunks' in preview ? hunkRows(preview.hunks) : changedRows(preview.before, preview.after)
  const count = (wanted: Row['change']) => rows.filter(({ change }) => change === wanted).length
  const counts = `${countOf(count('added'), 'line')} added, ${countOf(count('removed'), 'line')} removed`
  const where = preview.name === undefined ? '' : ` in ${preview.name}`
  return { kind: 'diff', total: `${counts}${where}`, rows }
}

function hunkRows(hunks: Extract<Preview, { hunks: unknown }>['hunks']): readonly Row[] {
  return hunks.flatMap(({ before, lines }, at): Row[] => [
    ...(at > 0 || before > 1 ? [{ ...skipped(`line ${before}`), isPlace: true }] : []),
    ...lines.map(
      (line): Row => ({
        change: line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : 'same',
        cells: [line.slice(1)],
      }),
    ),
  ])
}

/** How many unchanged lines are shown around a change. */
const CONTEXT = 3

function changedRows(before: string, after: string): readonly Row[] {
  const lines = diffLines(before, after)
  const changed = lines.flatMap(({ change }, at) => (change === 'same' ? [] : [at]))
  const rows: Row[] = []
  let shown = 0
  const skipTo = (at: number) => {
    if (at > shown) rows.push(skipped(countOf(at - shown, 'unchanged line')))
    shown = Math.max(shown, at)
  }
  for (const at of changed) {
    skipTo(at - CONTEXT)
    for (; shown <= Math.min(at + CONTEXT, lines.length - 1); shown++) {
      const { change, text } = lines[shown] ?? { change: 'same', text: '' }
      rows.push({ change, cells: [text.replace(/\n$/, '')] })
      // In a row of its own: no text can imitate one that stands for what is left out.
      if (change !== 'same' && !text.endsWith('\n')) rows.push(skipped('no line end'))
    }
  }
  skipTo(lines.length)
  return rows
}

const skipped = (what: string): Row => ({ change: 'skipped', cells: [`… ${what}`] })

const countOf = (count: number, thing: string): string =>
  `${count.toLocaleString('en')} ${thing}${count === 1 ? '' : 's'}`
