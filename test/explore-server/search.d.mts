import type { Model } from './models.mjs'

/** What was played of a model, and the first timeline that went wrong. */
export interface Explored {
  readonly model: string
  readonly played: number
  readonly timelines: number
  readonly states: number
  /** Whether every timeline was played. */
  readonly isWhole: boolean
  readonly failure: string | undefined
  /** Of random timelines: in how many of them something came about. */
  readonly reached?: Readonly<Record<string, number>>
}
export function exhaust(server: object, model: Model, options?: { readonly most?: number }): Promise<Explored>
export function wander(
  server: object,
  model: Model,
  options: { readonly seed: number; readonly timelines: number },
): Promise<Explored>
