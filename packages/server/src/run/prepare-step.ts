import { CountersignError, type Message, type TokenUsage, type ToolCall } from '@countersign/core'
import { checkOptions } from '../encoding/check-options.js'
import { copyOf } from '../encoding/copy.js'
import { untilAborted } from '../encoding/signals.js'
import type { ForwardedCalls, ForwardedHistory } from '../history/forwarded.js'
import { findUnansweredCalls, prepareMessagesForModel, readCalls } from '../history/history.js'
import { assertReconciled } from '../history/reconcile.js'
import { stepRules } from '../scope/agent-rules.js'
import type { StepContext, StepOverrides } from '../scope/prepare-step.js'
import type { RunScope } from '../scope/scope.js'
import { chooseTools } from '../tools/toolkit.js'

export interface StepStart {
  readonly number: number
  /** What the run has used before it. */
  readonly usage: readonly TokenUsage[]
  readonly messageId: string
}

export interface PreparedStep {
  readonly scope: RunScope
  /** What tools and decisions about calls see, whatever the model gets. */
  readonly history: readonly Message[]
  /** What the model gets. */
  readonly sent: ForwardedHistory
}

/**
 * Prepares a step: the model's copy of the history, and what the application's `prepareStep` has chosen for this step. Later steps and
 * requests work with the run's own history and tools again.
 *
 * @throws CountersignError `unreconciled-history`, `invalid-option`, `invalid-tool`; and what `prepareStep` throws.
 */
export async function preparedStep(
  run: RunScope,
  start: StepStart,
  { messages, forwarded }: ForwardedHistory,
): Promise<PreparedStep> {
  const history = prepareMessagesForModel(messages)
  assertReconciled(history)
  const usual = { scope: run, history, sent: { messages: history, forwarded } }
  const { prepareStep } = run.settings
  if (prepareStep === undefined || run.stop.aborted) return usual
  const prepared = await untilAborted(async () => prepareStep(contextOf(run, start, messages)), run.stop)
  if (prepared.left || prepared.value === undefined) return usual
  const chosen = prepared.value
  checkOptions('prepareStep', chosen, stepRules)
  const own = chosen.messages === undefined ? history : modelCopy(chosen.messages)
  const sent = { messages: own, forwarded: findForwarded(own, forwarded) }
  return { scope: withOverrides(run, chosen), history, sent }
}

function contextOf(
  { threadId, runId, context, stop: signal, written }: RunScope,
  { number: step, usage, messageId }: StepStart,
  history: readonly Message[],
): StepContext {
  const shown = prepareMessagesForModel(written.addTo(history), 'activity')
  return {
    threadId,
    runId,
    step,
    messages: copyOf(shown),
    usage: [...usage],
    context,
    signal,
    write: (part) => written.write(part, messageId),
  }
}

function withOverrides(run: RunScope, { model, system, tools }: StepOverrides): RunScope {
  return {
    ...run,
    settings: { ...run.settings, model: model ?? run.settings.model, system: system ?? run.settings.system },
    toolkit: tools === undefined ? run.toolkit : chooseTools(run.toolkit, tools),
  }
}

function modelCopy(chosen: readonly Message[]): readonly Message[] {
  const messages = prepareMessagesForModel(chosen)
  const [open] = findUnansweredCalls(messages)
  if (open !== undefined) {
    const message = `prepareStep returned the call ${open.call.id} without its result. Return both or neither.`
    throw new CountersignError('unreconciled-history', message, { toolCallId: open.call.id })
  }
  assertReconciled(messages)
  return messages
}

/** The forwarded calls among these messages, which may be copies. Each was approved for the request about to be sent, so it must be in it. */
function findForwarded(messages: readonly Message[], forwarded: ForwardedCalls): ForwardedCalls {
  const byId = new Map(readCalls(messages).map(({ call }) => [call.id, call]))
  return new Map(
    [...forwarded].map(([call, answer]): [ToolCall, typeof answer] => {
      const copy = byId.get(call.id)
      if (copy !== undefined) return [copy, answer]
      const message = `prepareStep left out the call ${call.id}, which its provider may run now. Return it with the others.`
      throw new CountersignError('unreconciled-history', message, { toolCallId: call.id })
    }),
  )
}
