import type { Decisions } from './choices.js'
import type { ClientModule, Model } from './model.js'
import { type Played, replay } from './play.js'

/** A timeline in which an invariant did not hold, shrunk. */
export interface Failure {
  readonly model: Model
  readonly decisions: Decisions
  readonly played: Played
}

/** Leaves out what the violation does not need: later stages, deviations, and the steps before them, as long as it stays the same one. */
export async function shrink(client: ClientModule, model: Model, played: Played): Promise<Failure> {
  const invariant = played.violations[0]?.invariant
  let best: Failure = { model, played, decisions: trimmed(played.decisions.map(({ choice }) => choice)) }
  for (let smaller = true; smaller; ) {
    smaller = false
    for (const candidate of candidates(best)) {
      const again = await replay(client, candidate.model, candidate.decisions)
      if (again.violations[0]?.invariant !== invariant || again.log.length > best.played.log.length) continue
      best = { ...candidate, decisions: trimmed(candidate.decisions), played: again }
      smaller = true
      break
    }
  }
  return best
}

function* candidates({ model, decisions }: Failure): Generator<Pick<Failure, 'model' | 'decisions'>> {
  for (let i = 0; i < model.stages.length; i++)
    yield { model: { ...model, stages: model.stages.filter((_, index) => index !== i) }, decisions }
  for (const [index, choice] of decisions.entries()) {
    if (choice === 0) continue
    yield { model, decisions: decisions.with(index, 0) }
  }
  for (const index of decisions.keys()) yield { model, decisions: decisions.toSpliced(index, 1) }
}

function trimmed(decisions: Decisions): Decisions {
  return decisions.slice(0, decisions.findLastIndex((choice) => choice > 0) + 1)
}
