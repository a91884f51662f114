import { isCountersignError } from '@countersign/core'
import type { CallFinished } from '../observe/events.js'
import { asJson, type RunObserver } from '../observe/run-observer.js'
import { failed, isSuccess, type ToolOutcome } from '../outcome.js'

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

interface ObservedCall {
  readonly tool: { readonly name: string }
  readonly input: unknown
  readonly context: { readonly toolCallId: string; readonly approved: boolean }
  readonly observer?: RunObserver | undefined
}

export async function observeCall(
  { tool, input, context, observer }: ObservedCall,
  work: () => Promise<Execution>,
): Promise<Execution> {
  if (observer === undefined) return work()
  const call = { toolCallId: context.toolCallId, toolName: tool.name }
  const started = observer.report({
    type: 'call-started',
    ...call,
    approved: context.approved,
    content: observer.content(() => ({ input: asJson(input) })),
  })
  const execution = await observer.within(started, work)
  observer.report({
    type: 'call-finished',
    ...call,
    duration: observer.since(started),
    ...endOf(execution),
    content: observer.content(() => ({ output: asJson(outcomeOf(execution)) })),
  })
  return execution
}

function endOf(execution: Execution): Pick<CallFinished, 'outcome' | 'code'> {
  switch (execution.kind) {
    case 'finished': {
      const { outcome } = execution
      return isSuccess(outcome)
        ? { outcome: 'result' }
        : { outcome: 'error', code: outcome.code ?? outcome.kind }
    }
    case 'interrupted':
      return { outcome: 'interrupted', code: 'interrupted' }
    case 'threw': {
      const { error } = execution
      return { outcome: 'error', code: isCountersignError(error) ? error.code : 'tool-failed' }
    }
    default:
      return execution satisfies never
  }
}
