export function median(values: readonly number[]): number

export function exponent(
  points: readonly { readonly size: number; readonly ms: number }[],
): number | undefined

interface Session<Result> {
  run(clock: { start(): void }): Promise<void>
  result(): Result
}

export function timeSession<Result>(
  session: Session<Result>,
  check: (result: Result) => void,
): Promise<number>

export function compare<One extends { readonly id: string; readonly name: string }>(options: {
  contenders: readonly One[]
  sizes: readonly number[]
  count(size: number): number
  /** Does the work once; its milliseconds. */
  measure(contender: One, size: number): Promise<number>
  runs?: number
  mostRuns?: number
  warmup?: number
}): Promise<
  readonly {
    readonly contender: string
    readonly size: number
    readonly ms?: number
    readonly runs?: number
  }[]
>

interface Point {
  readonly contender: string
  readonly size: number
  readonly ms?: number
  readonly runs?: number
  readonly skipped?: boolean
}

export function mergePoints(passes: readonly (readonly Point[])[]): readonly Point[]
