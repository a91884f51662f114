export interface Fixture {
  readonly name: string
  readonly description?: string
  /** The page of the specification whose rule it tests. */
  readonly specPage?: string
  readonly stream: readonly { readonly type: string; readonly [field: string]: unknown }[]
  readonly input?: { readonly messages?: readonly unknown[]; readonly tools?: readonly unknown[] }
  readonly client?: { readonly maxProtocolVersion?: string }
  readonly expect: Expectation
  readonly expectOverrides?: { readonly typescript?: Expectation }
}

export interface Expectation {
  readonly outcome?: 'completed' | 'failed'
  readonly errorContains?: string
  readonly runError?: boolean | string
  readonly eventTypes?: readonly string[]
  readonly eventTypesAbsent?: readonly string[]
  readonly eventPaths?: Readonly<Record<string, unknown>>
  readonly eventAbsentPaths?: readonly string[]
  readonly warnings?: readonly string[]
  readonly noWarnings?: boolean
  readonly messageCount?: number
  readonly messages?: readonly unknown[]
  readonly state?: unknown
  readonly request?: unknown
  readonly requestAbsentPaths?: readonly string[]
}

export interface FixtureResult {
  readonly verdict: 'completed' | 'failed'
  readonly messages: readonly { readonly id: string; readonly role: string }[]
  readonly state: unknown
  readonly warnings: readonly string[]
  readonly error: string
  readonly events: readonly { readonly type: string }[]
  readonly runErrors: readonly string[]
  readonly request: unknown
}

export function runFixture(fixture: Fixture): Promise<FixtureResult>
