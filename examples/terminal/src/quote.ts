import { type DisplayText, displayJson } from '@countersign/core'

const FIRST_STRONG_ISOLATE = '\u2068'
const POP_ISOLATE = '\u2069'

const MARK = '   | '

/**
 * Untrusted text with a mark before each line, wrapped so that no row starts in the first column: an argument
 * cannot imitate a line of this program. `columns` is the width of the terminal.
 */
export function quote(text: string, columns: number, mark = MARK): string {
  const rows = text
    .split('\n')
    .flatMap((line) => rowsOf(line.replaceAll('\t', '    '), roomIn(columns, mark)))
  return rows.map((row) => `${mark}${row}\n`).join('')
}

/** How many columns a row has after the mark. */
export function roomIn(columns: number, mark = MARK): number {
  return Math.max(20, columns - mark.length - 1)
}

/** Text between isolates stays isolated when it wraps. */
function rowsOf(line: string, room: number): string[] {
  const rows: string[] = []
  let row = ''
  let width = 0
  let isolated = false
  for (const { segment } of new Intl.Segmenter().segment(line)) {
    if (segment === FIRST_STRONG_ISOLATE || segment === POP_ISOLATE) {
      isolated = segment === FIRST_STRONG_ISOLATE
      row += segment
      continue
    }
    // too wide is better than too narrow: everything beyond ASCII counts as two columns
    const columns = /^[ -~]$/.test(segment) ? 1 : 2
    if (width + columns > room) {
      rows.push(isolated ? `${row}${POP_ISOLATE}` : row)
      row = isolated ? FIRST_STRONG_ISOLATE : ''
      width = 0
    }
    row += segment
    width += columns
  }
  return [...rows, row]
}

/** A JSON value in one line of at most `maxLength` characters, safe to show. */
export function inOneLine(value: unknown, maxLength = 160): string {
  return withRest(displayJson(value, { multiline: false, maxLength }))
}

/** A text, with a note on how much of it is not shown. */
export function withRest({ text, hidden }: DisplayText): string {
  return hidden > 0 ? `${text}… (${hidden} more characters)` : text
}
