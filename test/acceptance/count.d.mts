export function numbersIn(name: string): string[]

export interface TestReport {
  testResults: readonly { assertionResults: readonly { fullName: string; status: string }[] }[]
}

export interface Stated {
  passed: string[]
  failed: string[]
}

export interface BenchRow {
  acceptance?: readonly string[]
  ok: boolean
}

export function statedBy(results: TestReport): Map<string, Stated>

export function countSection(
  section: string,
  lines: Record<string, string>,
  stated: ReadonlyMap<string, Stated>,
  benchRows: readonly BenchRow[],
): { section: string; total: number; proved: string[]; open: string[] }

export function inRanges(names: readonly string[]): string
