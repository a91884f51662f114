import type { CountersignError, Message } from '@countersign/core'
import { toModelMessages } from '../history/model-messages.js'
import { type FinishReason, type ModelRequest, providerOf } from '../model/model.js'
import { asJson } from '../observe/run-observer.js'
import type { RunScope } from '../scope/scope.js'

/** What is known of a call of the model once it has ended. */
interface ModelEnd {
  /** Why it failed. */
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
