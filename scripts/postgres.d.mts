export interface TestPostgres {
  readonly url: string
  /** Simulates a crash and starts it again. Only for a server that was started for the tests. */
  readonly restart?: () => void
  stop(): Promise<void>
}

export interface PostgresOptions {
  readonly durable?: boolean
}

export function findPostgres(): string | undefined
export function startPostgres(programs: string, options?: PostgresOptions): Promise<Required<TestPostgres>>
export function postgresForTests(
  untested: string,
  options?: PostgresOptions,
): Promise<TestPostgres | undefined>
