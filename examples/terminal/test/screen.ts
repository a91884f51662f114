/** What a terminal of unlimited width shows of what was written to it: the few control sequences that prompts use, and nothing else. */
export function screenOf(written: string): string {
  const rows: string[][] = [[]]
  let [row, column] = [0, 0]
  const line = (at: number): string[] => {
    while (rows.length <= at) rows.push([])
    return rows[at] ?? []
  }
  const controls: Record<string, (count: number) => void> = {
    A: (count) => {
      row = Math.max(0, row - count)
    },
    B: (count) => {
      row += count
    },
    C: (count) => {
      column += count
    },
    D: (count) => {
      column = Math.max(0, column - count)
    },
    G: (count) => {
      column = count - 1
    },
    J: () => {
      line(row).splice(column)
      rows.splice(row + 1)
    },
    K: (count) => {
      line(row).splice(count === 2 ? 0 : column)
    },
    m: () => {},
    h: () => {},
    l: () => {},
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: this is what reads them
  for (const found of written.matchAll(/\x1b\[[?]?(\d*)([A-Za-z])|\x1b\[[\d;]*m|[\s\S]/gu)) {
    const [text, count, letter] = found
    if (letter !== undefined) {
      const control = controls[letter]
      if (!control) throw new Error(`The screen of the tests does not know ${JSON.stringify(text)}.`)
      control(count === undefined || count === '' ? 1 : Number(count))
    } else if (text === '\n') [row, column] = [row + 1, 0]
    else if (text === '\r') column = 0
    else if (!text.startsWith('\x1b')) {
      const cells = line(row)
      while (cells.length < column) cells.push(' ')
      cells[column++] = text
    }
  }
  return rows.map((cells) => cells.join('').trimEnd()).join('\n')
}
