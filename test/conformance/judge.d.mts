import type { Fixture, FixtureResult } from './ag-ui-driver.mjs'

export interface Difference {
  readonly what: string
  readonly expected: unknown
  readonly actual: unknown
  /** The clause by which a client of another project may differ here. */
  readonly allowedBy?: string
  /** The page of the specification whose rule the fixture tests. */
  readonly rule?: string
}

/** The clause by which our version stands for the corpus's. */
export const versionClause: string

export function loadFixtures(folder: string): Fixture[]
export function judge(fixture: Fixture, result: FixtureResult): Difference[]
