export interface Ledgers {
  readonly kind: string
  stop(): Promise<void>
}

export const inMemory: Ledgers
export function ledgersOf(kind: string): Promise<Ledgers | undefined>
