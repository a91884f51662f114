export interface Edit {
  /** Below packages/. */
  readonly file: string
  readonly find: string
  readonly put: string
}

export const checks: Readonly<Record<string, Edit | readonly Edit[]>>
export function editsOf(name: string): readonly Edit[]
