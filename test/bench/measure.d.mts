export function median(values: readonly number[]): number

export function exponent(
  points: readonly { readonly size: number; readonly ms: number }[],
): number | undefined

/** Who takes part: opens sessions, which do the work and say what came out. */
interface Contender {
  readonly id: string
  readonly name: string
}

interface Session<Result> {
  run(clock: { start(): void }): Promise<void>
  result(): Result
}

export function compare<One extends Contender, Result>(options: {
  contenders: readonly One[]
  sizes: readonly number[]
  count(size: number): number
  open(contender: One, size: number): Session<Result>
  check(result: Result, size: number, contender: One): void
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
