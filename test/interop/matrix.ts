import { test } from 'vitest'

/** What is tried with every peer. `interop.mjs` prints the cells by the names of their tests. */
const rows = [
  'plain text',
  'tool call',
  'approve',
  'deny with reason',
  'edit',
  'two in parallel',
  'chained',
  'client tool',
  'error',
  'abort',
  'reload',
] as const

export type Row = (typeof rows)[number]

type Prove = () => Promise<void>

/** A cell that the peer cannot do: why, and the proof that it is so. */
export interface Cannot {
  readonly reason: string
  readonly prove: Prove
}

/** The tests of one column: each row as everybody does it, or what is in its place. */
export function column(
  name: string,
  cells: Readonly<Record<Row, Prove>>,
  otherwise: { readonly [R in Row]?: Prove | Cannot } = {},
): void {
  for (const row of rows) {
    const cell = otherwise[row] ?? cells[row]
    if (typeof cell === 'function') test(`matrix | ${name} | ${row}`, cell)
    else test(`matrix | ${name} | ${row} | cannot: ${cell.reason}`, cell.prove)
  }
}
