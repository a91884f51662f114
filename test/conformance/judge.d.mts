import type { Fixture, FixtureResult } from './ag-ui-driver.mjs'

export interface Difference {
  readonly what: string
  readonly expected: unknown
  readonly actual: unknown
  /** The clause by which a client of another project may differ here. */
  readonly allowedBy?: string
}

export function loadFixtures(folder: string): Fixture[]
export function judge(fixture: Fixture, result: FixtureResult): Difference[]
