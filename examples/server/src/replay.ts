import type { Call, FinishedCall, Outcome, Turn } from './conversation.js'

/** One step of a plan: it writes text, or makes calls and continues with their outcomes. */
export type Act = { kind: 'say'; text: string } | { kind: 'call'; calls: readonly Call[] }

/** Written as if it ran straight through; {@link nextAction} runs it again from the start for every step. */
export type Plan = Generator<Act, void, readonly Outcome[]>

export interface Action {
  text: string
  /** Empty: the turn is done. */
  calls: readonly Call[]
}

export function* say(text: string): Plan {
  yield { kind: 'say', text }
}

/** Makes several calls at once; returns each with its outcome. */
export function* callAll(calls: readonly Call[]): Generator<Act, FinishedCall[], readonly Outcome[]> {
  const outcomes = yield { kind: 'call', calls }
  return calls.map((call, index) => ({ ...call, outcome: outcomes[index] ?? { kind: 'cancelled' } }))
}

export function* call(name: string, input: Call['input']): Generator<Act, FinishedCall, readonly Outcome[]> {
  const [finished] = yield* callAll([{ name, input }])
  return finished ?? { name, input, outcome: { kind: 'cancelled' } }
}

/**
 * The next action in `turn`: runs the plan from its start and gives it the outcomes that the conversation
 * already holds, until it makes new calls or ends. So the planner needs no memory besides the messages.
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
    // Text before these calls is already in the conversation.
    said = []
    next = plan.next(step.value.map((finished) => finished.outcome))
  }
  return { text: said.join('\n\n'), calls: [] }
}
