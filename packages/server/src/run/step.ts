import {
  CountersignError,
  type Message,
  type TokenUsage,
  type ToolMessage,
  type ToolOutcome,
} from '@countersign/core'
import { randomId } from '../encoding/ids.js'
import type { ApprovalRequest } from '../gate/ask.js'
import { prepareMessagesForModel, resultMessage } from '../history/history.js'
import { toModelMessages } from '../history/model-messages.js'
import { assertReconciled } from '../history/reconcile.js'
import type { FinishReason, ModelEvent, ModelRequest, ProviderMetadata } from '../model/model.js'
import type { RunScope } from '../scope/scope.js'
import { emitResult } from './emit-result.js'
import { decideFresh, type FreshDecision, runFresh } from './fresh-calls.js'
import { type CallEnd, StepWriter, type WrittenCall } from './step-writer.js'

/** What one call of the model led to. */
export interface StepResult {
  /** The model's own, without results. */
  readonly messages: readonly Message[]
  readonly results: readonly ToolMessage[]
  readonly asked: readonly ApprovalRequest[]
  /** Calls left to the client, in order. */
  readonly clientCalls: readonly string[]
  readonly usage: readonly TokenUsage[]
  readonly metadata: ProviderMetadata
  readonly ending:
    | { readonly kind: 'finished'; readonly reason: FinishReason; readonly localCalls: number }
    | { readonly kind: 'stopped' }
    | { readonly kind: 'failed'; readonly error: CountersignError }
}

/** Calls the model once: its events go out as they come, and each call is decided as soon as its arguments are complete. */
export async function runStep(
  scope: RunScope,
  history: readonly Message[],
  usedIds: Set<string>,
): Promise<StepResult> {
  const prepared = prepareMessagesForModel(history)
  assertReconciled(prepared)
  return new Step(scope, prepared, usedIds).run()
}

class Step {
  readonly #scope: RunScope
  readonly #history: readonly Message[]
  readonly #usedIds: Set<string>
  readonly #writer: StepWriter
  readonly #calls = new Map<string, WrittenCall>()
  readonly #running: Promise<void>[] = []
  readonly #results = new Map<string, ToolMessage>()
  readonly #asked: ApprovalRequest[] = []
  readonly #clientCalls: string[] = []
  readonly #usage: TokenUsage[] = []
  #metadata: ProviderMetadata = {}
  #finish: FinishReason | undefined
  #threw: CountersignError | undefined

  constructor(scope: RunScope, history: readonly Message[], usedIds: Set<string>) {
    this.#scope = scope
    this.#history = history
    this.#usedIds = usedIds
    this.#writer = new StepWriter(scope.emit, scope.settings.generateId)
  }

  async run(): Promise<StepResult> {
    let failure = await this.#stream()
    await this.#writer.close()
    await Promise.all(this.#running)
    failure ??= this.#threw
    const stopped = this.#scope.stop.aborted
    if (failure === undefined || stopped) await this.#abandonOpenCalls()
    return {
      messages: this.#writer.messages(),
      results: [...this.#results.values()],
      asked: this.#asked,
      clientCalls: this.#clientCalls,
      usage: this.#usage,
      metadata: this.#metadata,
      ending: this.#ending(stopped, failure),
    }
  }

  #ending(stopped: boolean, error: CountersignError | undefined): StepResult['ending'] {
    if (stopped) return { kind: 'stopped' }
    if (error !== undefined) return { kind: 'failed', error }
    const localCalls = [...this.#calls.values()].filter((call) => !call.providerExecuted).length
    return { kind: 'finished', reason: this.#finish ?? 'stop', localCalls }
  }

  async #stream(): Promise<CountersignError | undefined> {
    const { settings, toolkit, stop } = this.#scope
    const request: ModelRequest = {
      ...(settings.system !== undefined && { system: settings.system }),
      messages: toModelMessages(this.#history),
      tools: toolkit.forModel,
    }
    try {
      for await (const event of settings.model.stream(request, { signal: stop })) {
        if (stop.aborted) return undefined
        await this.#take(event)
      }
    } catch (error) {
      return stop.aborted ? undefined : modelFailed('The model failed.', error)
    }
    if (stop.aborted || this.#finish !== undefined) return undefined
    return modelFailed('The model broke off in the middle of its answer.')
  }

  async #take(event: ModelEvent): Promise<void> {
    const writer = this.#writer
    switch (event.type) {
      case 'text-delta':
        return writer.text(event.delta)
      case 'text-end':
        return writer.endText(event.metadata)
      case 'reasoning-delta':
        return writer.reasoning(event.delta)
      case 'reasoning-end':
        return writer.endReasoning(event.signature, event.metadata)
      case 'tool-call-start':
        await this.#startCall(event.id, event.name, event.providerExecuted)
        return
      case 'tool-call-delta':
        return writer.growCall(this.#openCall(event.id), event.delta)
      case 'tool-call-end':
        return this.#endCall(this.#openCall(event.id), event)
      case 'tool-call': {
        const call = await this.#startCall(event.id, event.name, event.providerExecuted)
        await writer.growCall(call, event.arguments)
        return this.#endCall(call, event)
      }
      case 'tool-result':
        return this.#settle(this.#calls.get(event.toolCallId)?.id ?? event.toolCallId, event.outcome)
      case 'source':
        return this.#scope.emit({
          type: 'CUSTOM',
          name: 'source',
          value: { messageId: writer.messageId, ...event.source },
        })
      case 'usage':
        this.#usage.push(event.usage)
        return
      case 'metadata':
        this.#metadata = { ...this.#metadata, ...event.metadata }
        return
      case 'finish':
        this.#finish = event.reason
        return
      default:
        return event satisfies never
    }
  }

  /** Call ids are made unique over the history: some providers count from zero in every answer. */
  async #startCall(id: string, name: string, providerExecuted?: boolean): Promise<WrittenCall> {
    const unique = id === '' || this.#usedIds.has(id) ? randomId(id === '' ? 'call_' : `${id}_`) : id
    this.#usedIds.add(unique)
    const call = await this.#writer.startCall(unique, name, providerExecuted)
    this.#calls.set(id === '' ? unique : id, call)
    return call
  }

  #openCall(id: string): WrittenCall {
    const call = this.#calls.get(id)
    if (call !== undefined && this.#writer.openCalls.includes(call)) return call
    throw new CountersignError('model-failed', `The model continued the tool call ${id}, which is not open.`)
  }

  /** The end of a call is held back until the gate has decided: it carries the token of the request. */
  async #endCall(call: WrittenCall, { signature, metadata }: Omit<CallEnd, 'token'>): Promise<void> {
    const end = { signature, metadata }
    if (call.providerExecuted) return this.#writer.endCall(call, end)
    if (!this.#scope.settings.runTools) {
      this.#clientCalls.push(call.id)
      return this.#writer.endCall(call, end)
    }
    const decision = await decideFresh(this.#scope, call, this.#history)
    const token = decision.kind === 'ask' ? decision.request.approval.token : undefined
    await this.#writer.endCall(call, { ...end, token })
    return this.#act(call.id, decision)
  }

  async #act(id: string, decision: FreshDecision): Promise<void> {
    switch (decision.kind) {
      case 'refused':
        return this.#settle(id, decision.outcome)
      case 'client':
        this.#clientCalls.push(id)
        return
      case 'ask':
        this.#asked.push(decision.request)
        return this.#scope.emit({ type: 'CUSTOM', name: 'approval-requested', value: decision.request })
      case 'run':
        this.#running.push(this.#execute(id, decision))
        return
      default:
        return decision satisfies never
    }
  }

  async #execute(id: string, decision: Extract<FreshDecision, { kind: 'run' }>): Promise<void> {
    const result = await this.#scope.limit(() => runFresh(this.#scope, decision, this.#history))
    if (result.kind === 'outcome') await this.#settle(id, result.outcome)
    else this.#threw ??= result.error
  }

  async #settle(toolCallId: string, outcome: ToolOutcome): Promise<void> {
    const message = resultMessage(this.#scope.settings.generateId(), toolCallId, outcome)
    this.#results.set(toolCallId, message)
    await emitResult(this.#scope, message, outcome)
  }

  /** A stopped model leaves calls in mid-arguments: they are closed, since a finished run may leave nothing open. */
  async #abandonOpenCalls(): Promise<void> {
    for (const call of this.#writer.openCalls) {
      await this.#writer.endCall(call)
      await this.#settle(call.id, {
        kind: 'cancelled',
        reason: 'the arguments were not completed',
        code: 'incomplete-arguments',
      })
    }
  }
}

function modelFailed(message: string, cause?: unknown): CountersignError {
  return new CountersignError('model-failed', message, {}, cause)
}
