import type { AGUIEvent, CountersignError, Message } from '@countersign/core'
import { toModelMessages } from '../history/model-messages.js'
import { type FinishReason, type ModelRequest, providerOf } from '../model/model.js'
import type { RunFinished } from '../observe/events.js'
import { asJson } from '../observe/run-observer.js'
import type { RunScope } from '../scope/scope.js'

interface ModelEnd {
  readonly broken: CountersignError | undefined
  readonly finishReason: FinishReason | undefined
  /** By the agent's clock. */
  readonly firstEventAt: number | undefined
  readonly messages: readonly Message[]
}

/** Reports the start and the end of a call of the model to the observer. */
export async function observeModel(
  scope: RunScope,
  { system, messages }: ModelRequest,
  call: () => Promise<ModelEnd>,
): Promise<ModelEnd> {
  const { observer, settings, usage, stop } = scope
  if (observer === undefined) return call()
  const model = settings.model.id
  const before = usage.length
  const started = observer.report({
    type: 'model-started',
    model,
    content: observer.content(() => ({ system, messages: asJson(messages) })),
  })
  const end = await observer.within(started, call)
  const { broken, finishReason, firstEventAt } = end
  observer.report({
    type: 'model-finished',
    model,
    duration: observer.since(started),
    ...(firstEventAt !== undefined && { firstEventAfter: Math.max(0, firstEventAt - started.at) }),
    outcome: broken ? 'error' : stop.aborted ? 'stopped' : 'finished',
    finishReason,
    code: broken?.code,
    usage: usage.slice(before),
    content: observer.content(() => ({
      messages: asJson(toModelMessages(end.messages, providerOf(settings.model))),
    })),
  })
  return end
}

/** The end of a run for the observer, from its last event. */
export function runFinished(last: AGUIEvent, duration: number): RunFinished {
  const end = { type: 'run-finished', duration } as const
  if (last.type === 'RUN_FINISHED') {
    const { outcome, usage = [], metadata } = last
    const { finishReason } = metadata ?? {}
    return {
      ...end,
      outcome: outcome?.type ?? 'success',
      finishReason: typeof finishReason === 'string' ? finishReason : undefined,
      usage,
    }
  }
  const { code, usage = [] }: Partial<Extract<AGUIEvent, { type: 'RUN_ERROR' }>> =
    last.type === 'RUN_ERROR' ? last : {}
  return code === 'aborted' || code === 'disconnected'
    ? { ...end, outcome: 'cancelled', finishReason: code, usage }
    : { ...end, outcome: 'error', code, usage }
}
