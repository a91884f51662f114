/** The required parts of a test runner; those of vitest and jest fit. */
export interface SuiteRunner {
  test(name: string, run: () => Promise<void>): void
  /** `toEqual` compares by value and treats a member that is `undefined` as absent. */
  expect(actual: unknown): { toEqual(expected: unknown): void }
}
