import type { Edit } from './checks.mjs'

/** A built server: where it is, and what it exports. */
export interface Built {
  readonly path: string
  readonly server: unknown
}

export const folder: string
export function buildServer(name: string, edits?: readonly Edit[]): Promise<Built>
export function misplaced(edits: readonly Edit[]): readonly string[]
