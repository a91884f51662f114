import type { Model, ModelEvent, ModelRequest } from '@countersign/server'

/** An entry of `index.json`. */
export interface ReplayCase {
  readonly id: string
  readonly provider: string
  readonly protocol: string
  readonly stream: boolean
  readonly status: number
  readonly contentType: string
  readonly file: string
  readonly expect: string
  readonly request?: string
  readonly group?: string
  readonly step?: number
  readonly contains: readonly string[]
  readonly model?: string
}

export const ownFixtures: string
/** Cases of the same form that we wrote ourselves, for what no recording has. */
export const writtenCases: string
export const writeSizes: readonly number[]
export function casesOf(folder: string): readonly ReplayCase[]
export function replayFolder(
  folder: string,
  sizes?: readonly number[],
): Promise<{ lines: string[]; agrees: boolean }>
export function isSpoken(entry: ReplayCase): boolean
export function listen(
  model: Model,
  asked: ModelRequest,
  signal?: AbortSignal,
): Promise<{ events: ModelEvent[]; error?: unknown }>
export function checkCase(
  entry: ReplayCase,
  options?: { folder?: string; sizes?: readonly number[] },
): Promise<readonly string[]>
