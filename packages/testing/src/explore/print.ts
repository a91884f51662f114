import type { Failure } from './explore.js'
import { invariants } from './invariants.js'
import { printObserved } from './observed.js'

/** A failure as a person reads it. */
export function printFailure({ model, decisions, played }: Failure): string {
  const found = played.violations.map(({ invariant, why }) => `${invariants[invariant]}\n  ${why}`)
  return [...found, `Model ${JSON.stringify(model)}`, `Decisions [${decisions}]`, ...played.log.map(printObserved)].join('\n')
}
