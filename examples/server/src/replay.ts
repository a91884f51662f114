import type { Call, FinishedCall, Outcome, Turn } from './conversation.js'

/** What a plan does: it says something, or it asks for calls and goes on with their outcomes. */
export type Act = { kind: 'say'; text: string } | { kind: 'call'; calls: readonly Call[] }

/** Written as if it ran through at once; {@link nextAction} runs it anew, from the start, for every step. */
export type Plan = Generator<Act, void, readonly Outcome[]>

export interface Action {
  text: string
  /** Empty: the turn is done. */
  calls: readonly Call[]
}

export function* say(text: string): Plan {
  yield { kind: 'say', text }
}

/** Asks for calls at once; gives each with its outcome. */
export function* callAll(calls: readonly Call[]): Generator<Act, FinishedCall[], readonly Outcome[]> {
  const outcomes = yield { kind: 'call', calls }
  return calls.map((call, index) => ({ ...call, outcome: outcomes[index] ?? { kind: 'cancelled' } }))
}

export function* call(name: string, input: Call['input']): Generator<Act, FinishedCall, readonly Outcome[]> {
  const [finished] = yield* callAll([{ name, input }])
  return finished ?? { name, input, outcome: { kind: 'cancelled' } }
}

/**
 * What comes next in `turn`: the plan is run from its start and given the outcomes that the conversation already holds, until it asks
 * for calls that were not made yet, or ends. So a planner needs no memory of its own: the messages are its memory.
 */
export function nextAction(plan: Plan, turn: Turn): Action {
  const made = turn.steps.values()
  let said: string[] = []
  let next = plan.next([])
  while (!next.done) {
    const act = next.value
    if (act.kind === 'say') {
      said.push(act.text)
      next = plan.next([])
      continue
    }
    const step = made.next()
    if (step.done) return { text: said.join('\n\n'), calls: act.calls }
    // What was said before these calls stands in the conversation already.
    said = []
    next = plan.next(step.value.map((finished) => finished.outcome))
  }
  return { text: said.join('\n\n'), calls: [] }
}
