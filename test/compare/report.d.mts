interface Call {
  readonly to: string
  readonly amount: number
}

/** What a scenario found, and what ran. */
export interface Found {
  readonly approved?: readonly Call[]
  readonly denied?: readonly Call[]
  readonly edited?: readonly Call[]
  readonly ran: readonly Call[]
  readonly owed?: boolean
  readonly told?: boolean
  readonly late?: boolean
  readonly disagree?: boolean
  readonly toldNotSent?: boolean
  readonly cannot?: string
  readonly stream?: 'whole' | 'cut'
  readonly flood?: { readonly said: number; readonly grown: number }
}

export function verdictOf(found: Found): string
export function replaceTables(page: string, words: ReadonlyMap<string, string>): string
export function readTables(page: string): ReadonlyMap<string, string>
