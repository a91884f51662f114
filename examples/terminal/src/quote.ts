import { type DisplayText, displayJson } from '@countersign/core'

const FIRST_STRONG_ISOLATE = '\u2068'
const POP_ISOLATE = '\u2069'

/**
 * Lines of others behind a mark, broken so that none runs into the first column: what an argument says cannot be taken for a line of
 * this program. `columns` is the width of the terminal.
 */
export function quote(text: string, columns: number, mark = '   | '): string {
  const room = Math.max(20, columns - mark.length - 1)
  const rows = text.split('\n').flatMap((line) => breakLine(line.replaceAll('\t', '    '), room))
  return rows.map((row) => `${mark}${row}\n`).join('')
}

/** A line between isolates stays between them in every row. */
function breakLine(line: string, room: number): string[] {
  if (!line.startsWith(FIRST_STRONG_ISOLATE)) return rowsOf(line, room)
  return rowsOf(line.slice(1, -1), room).map((row) => `${FIRST_STRONG_ISOLATE}${row}${POP_ISOLATE}`)
}

function rowsOf(line: string, room: number): string[] {
  const rows: string[] = []
  let row = ''
  let width = 0
  for (const { segment } of new Intl.Segmenter().segment(line)) {
    // rather too wide than too narrow: nothing beyond ASCII is taken to be one column
    const columns = /^[ -~]$/.test(segment) ? 1 : 2
    if (width + columns > room) {
      rows.push(row)
      row = ''
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

/** A text with what is not shown of it told. */
export function withRest({ text, hidden }: DisplayText): string {
  return hidden > 0 ? `${text}… (${hidden} more characters)` : text
}
