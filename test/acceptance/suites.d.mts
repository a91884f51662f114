export type SuiteCounts = Record<string, Record<string, number>>

export const stores: readonly string[]

export function countSuites(names: readonly string[]): SuiteCounts

export function unequal(counts: SuiteCounts): string[]

export function suiteTable(counts: SuiteCounts): string
