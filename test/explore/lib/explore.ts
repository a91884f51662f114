import { collectingRejections } from '../../../packages/testing/src/suites/binding/rejections.js'
import { type Decisions, drawing, nextDecisions, replaying, seeded } from './choices.js'
import type { ClientModule, Model } from './model.js'
import { type Played, play } from './play.js'
import { type Failure, shrink } from './shrink.js'

/** What an exploration found, and how far it went. Timelines and states are given as 53-bit hashes, so that several can be counted together. */
export interface Exploration {
  /** How many timelines were played. */
  readonly played: number
  /** Different sequences of observed events, acts and requests. */
  readonly timelines: ReadonlySet<number>
  /** Different states of view, flags and server together. */
  readonly states: ReadonlySet<number>
  readonly failures: readonly Failure[]
}

export interface ExploreOptions {
  readonly client: ClientModule
  readonly models: readonly Model[]
  /** Stops after so many timelines. Default: explores all there are. */
  readonly maxTimelines?: number
  /** Stops after so many failures. Default 1. */
  readonly maxFailures?: number
}

/**
 * Runs the client through every timeline of each model, depth first, and checks every invariant after every step. Deterministic: a timeline
 * is its list of decisions.
 */
export function explore(options: ExploreOptions): Promise<Exploration> {
  return collectingRejections(() => exploreAll(options))
}

async function exploreAll({ client, models, maxTimelines = Infinity, maxFailures = 1 }: ExploreOptions) {
  const found = collect(client)
  for (const model of models) {
    let decisions: Decisions | undefined = []
    while (decisions && found.played < maxTimelines && found.failures.length < maxFailures) {
      const played = await found.play(model, replaying(decisions))
      decisions = nextDecisions(played.decisions)
    }
  }
  return found
}

export interface RandomOptions {
  readonly client: ClientModule
  readonly seed: number
  readonly timelines: number
  /** The model of each timeline. */
  readonly model: (random: () => number) => Model
  /** How seldom something goes otherwise than planned, in steps. Default 4. */
  readonly rarity?: number
  readonly maxFailures?: number
}

/** Timelines drawn from a seed, for lengths that cannot be explored whole. */
export function exploreRandom(options: RandomOptions): Promise<Exploration> {
  return collectingRejections(() => drawAll(options))
}

async function drawAll(options: RandomOptions): Promise<Exploration> {
  const { client, seed, timelines, model, rarity = 4, maxFailures = 1 } = options
  const found = collect(client)
  for (let i = 0; i < timelines && found.failures.length < maxFailures; i++) {
    const random = seeded(seed + i)
    await found.play(model(random), drawing(random, rarity))
  }
  return found
}

function collect(client: ClientModule) {
  const timelines = new Set<number>()
  const states = new Set<number>()
  const failures: Failure[] = []
  let count = 0
  return {
    timelines,
    states,
    failures,
    get played() {
      return count
    },
    async play(model: Model, chooser: Parameters<typeof play>[2]): Promise<Played> {
      count++
      const played = await play(client, model, chooser, (state) => states.add(state))
      timelines.add(played.trace)
      if (played.violations.length > 0) failures.push(await shrink(client, model, played))
      return played
    },
  }
}
