import type { PreviewLine, PreviewView } from '@countersign/client'
import { quote } from './quote.js'

/** A preview as text: the total first, `+` and `-` in a diff, and `*` for what is new since the user looked, or gone. */
export function renderPreview(view: PreviewView, columns: number): string {
  const before = view.previous
  return [
    before ? '!! Changed since you looked. Nothing has run. Lines with * are new.\n' : '',
    `   What it would do\n${linesOf(view, columns)}`,
    before ? `   What you saw before; lines with * are gone\n${linesOf(before, columns)}` : '',
  ].join('')
}

function linesOf(view: PreviewView, columns: number): string {
  const isMarked = [view.total, ...view.lines].some((line) => line?.isNew)
  const total = view.total ? [`${markOf(view.total, isMarked)}${view.total.cells[0]?.text}`] : []
  const lines = view.lines.flatMap((line) =>
    cellsOf(line, view).map((text) => `${markOf(line, isMarked)}${text}`),
  )
  const rows = [...total, ...lines]
  return quote(rows.join('\n'), columns)
}

/** A row of a table takes a line for each cell, named by its column: cells side by side could imitate each other. */
function cellsOf(line: PreviewLine, { columns, kind }: PreviewView): readonly string[] {
  const cells = line.cells.map(({ text, hidden }) => (hidden > 0 ? `${text}…` : text))
  if (columns.length === 0) return cells.map((cell) => `${kind === 'diff' ? signOf(line) : ''}${cell}`)
  return cells.map((cell, at) => `${at === 0 ? '- ' : '  '}${columns[at]?.text}: ${cell}`)
}

const markOf = ({ isNew }: PreviewLine, isMarked: boolean): string => (isNew ? '* ' : isMarked ? '  ' : '')

function signOf({ change }: PreviewLine): string {
  switch (change) {
    case 'added':
      return '+ '
    case 'removed':
      return '- '
    case 'same':
    case 'skipped':
      return '  '
    default:
      return change satisfies never
  }
}
