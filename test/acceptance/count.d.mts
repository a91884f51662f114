export function numbersIn(name: string): string[]

export interface TestReport {
  testResults: readonly {
    status?: string
    assertionResults: readonly { fullName: string; status: string }[]
  }[]
}

export interface Stated {
  passed: string[]
  failed: string[]
}

/** A row of the benchmark or of the coverage. */
export interface MeasuredRow {
  acceptance?: readonly string[]
  ok: boolean
}

export function statedBy(results: TestReport): Map<string, Stated>

export function countSection(
  section: string,
  lines: Record<string, string>,
  stated: ReadonlyMap<string, Stated>,
  rows: readonly MeasuredRow[],
): { section: string; total: number; proved: string[]; open: string[] }

export interface CoveredFolder {
  folder: string
  percent: number
}

export function coverageByFolder(
  summary: Record<string, { lines: { total: number; covered: number } }>,
  root: string,
): CoveredFolder[]

export function coverageRow(
  results: TestReport & { numFailedTests: number },
  parts: readonly { percent: number }[],
): MeasuredRow

export function inRanges(names: readonly string[]): string
