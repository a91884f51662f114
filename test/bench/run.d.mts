/** One row of results: what was claimed, or what a server workload measured. */
export interface ResultRow {
  readonly workload: string
  /** Of a server workload. */
  readonly name?: string
  readonly ok?: boolean
  readonly acceptance?: readonly string[]
}

export interface Results {
  readonly versions: readonly string[]
  readonly rows: readonly ResultRow[]
  readonly tables: readonly { readonly id: string }[]
}

export function main(
  args: readonly string[],
  options?: { write?: (text: string) => void; scale?: 'full' | 'quick' | 'tiny' },
): Promise<Results>
