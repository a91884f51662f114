import { failed, type ToolOutcome } from '../outcome.js'

/** How running a tool ended. */
export type Execution =
  | { readonly kind: 'finished'; readonly outcome: ToolOutcome }
  /** Aborted or timed out after its start: it may or may not have had an effect. */
  | { readonly kind: 'interrupted'; readonly reason: string }
  /** It threw; `failure` is what the model is told. */
  | { readonly kind: 'threw'; readonly error: unknown; readonly failure: ToolOutcome }

/** What the model is told of an execution. */
export function outcomeOf(execution: Execution): ToolOutcome {
  switch (execution.kind) {
    case 'finished':
      return execution.outcome
    case 'interrupted':
      return failed('execution_error', execution.reason, 'interrupted')
    case 'threw':
      return execution.failure
    default:
      return execution satisfies never
  }
}
