import {
  CountersignError,
  type Message,
  type TokenUsage,
  type ToolMessage,
  type ToolOutcome,
} from '@countersign/core'
import { recordsOf } from '../answers/issued.js'
import type { ApprovalRequest } from '../gate/ask.js'
import type { ForwardedCalls, ForwardedHistory } from '../history/forwarded.js'
import { callAskedAbout, prepareMessagesForModel, resultMessage } from '../history/history.js'
import { toModelMessages } from '../history/model-messages.js'
import { assertReconciled } from '../history/reconcile.js'
import {
  type FinishReason,
  type ModelEvent,
  type ModelRequest,
  type ProviderMetadata,
  providerOf,
} from '../model/model.js'
import type { RunScope } from '../scope/scope.js'
import { isReserved } from '../tools/toolkit.js'
import { emitRequest } from './emit-request.js'
import { emitRefusal, emitResult, readyEvent } from './emit-result.js'
import { decideFresh, type FreshDecision, runFresh } from './fresh-calls.js'
import { awaitAnswer, type LiveEnding } from './live-answer.js'
import { StepCalls } from './step-calls.js'
import { type CallEnd, StepWriter, type WrittenCall } from './step-writer.js'

/** What one call of the model led to. */
export interface StepResult {
  /** The model's own, without results. */
  readonly messages: readonly Message[]
  readonly results: readonly ToolMessage[]
  readonly asked: readonly ApprovalRequest[]
  /** Calls left to the client, in order. */
  readonly clientCalls: readonly string[]
  /** Calls that the provider was just allowed to run. */
  readonly forwarded: ReadonlySet<string>
  readonly usage: readonly TokenUsage[]
  readonly metadata: ProviderMetadata
  readonly ending: /** `openCalls` are those whose ends the model has not seen yet. */
    | { readonly kind: 'finished'; readonly reason: FinishReason; readonly openCalls: number }
    | { readonly kind: 'stopped' }
    | { readonly kind: 'failed'; readonly error: CountersignError }
}

/** Calls the model once: its events go out as they come, and each call is decided as soon as its arguments are complete. */
export async function runStep(
  scope: RunScope,
  { messages, forwarded }: ForwardedHistory,
  usedIds: Set<string>,
): Promise<StepResult> {
  const prepared = prepareMessagesForModel(messages)
  assertReconciled(prepared)
  return new Step(scope, { messages: prepared, forwarded }, usedIds).run()
}

type StartedCall = Extract<ModelEvent, { type: 'tool-call-start' | 'tool-call' }>

class Step {
  readonly #scope: RunScope
  readonly #history: readonly Message[]
  readonly #forwarded: ForwardedCalls
  readonly #writer: StepWriter
  readonly #calls: StepCalls
  readonly #running: Promise<void>[] = []
  readonly #results = new Map<string, ToolMessage>()
  readonly #asked: ApprovalRequest[] = []
  readonly #clientCalls: string[] = []
  readonly #approved = new Set<string>()
  readonly #usage: TokenUsage[] = []
  readonly #failed = new AbortController()
  /** How long a person is waited for over a live channel. */
  readonly #patience: AbortSignal
  #metadata: ProviderMetadata = {}
  #finish: FinishReason | undefined
  #threw: CountersignError | undefined

  constructor(scope: RunScope, { messages, forwarded }: ForwardedHistory, usedIds: Set<string>) {
    this.#scope = scope
    this.#history = messages
    this.#forwarded = forwarded
    this.#calls = new StepCalls(usedIds)
    this.#writer = new StepWriter(scope.emit, scope.settings.generateId, providerOf(scope.settings.model))
    this.#patience = AbortSignal.any([scope.stop, this.#failed.signal])
  }

  async run(): Promise<StepResult> {
    let failure = await this.#stream()
    if (failure !== undefined) this.#failed.abort()
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
      forwarded: this.#approved,
      usage: this.#usage,
      metadata: this.#metadata,
      ending: this.#ending(stopped, failure),
    }
  }

  #ending(stopped: boolean, error: CountersignError | undefined): StepResult['ending'] {
    // a step that only stopped waiting ends like one that never waited: with its open questions
    const onlyWaited =
      this.#scope.answers !== undefined && this.#asked.length > 0 && this.#finish !== undefined
    if (stopped && !onlyWaited) return { kind: 'stopped' }
    if (error !== undefined) return { kind: 'failed', error }
    const { runTools } = this.#scope.settings
    const openCalls = this.#calls.written.filter(
      ({ providerExecuted, approvalId }) => !providerExecuted || (runTools && approvalId !== undefined),
    ).length
    return { kind: 'finished', reason: this.#finish ?? 'stop', openCalls }
  }

  async #stream(): Promise<CountersignError | undefined> {
    const { settings, toolkit, stop } = this.#scope
    const request: ModelRequest = {
      ...(settings.system !== undefined && { system: settings.system }),
      messages: toModelMessages(this.#history, providerOf(settings.model), this.#forwarded),
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
        await this.#startCall(event)
        return
      case 'tool-call-delta':
        if (this.#calls.isEarlier(event.id)) return
        return writer.growCall(this.#calls.find(event.id, writer.openCalls), event.delta)
      case 'tool-call-end':
        if (this.#calls.isEarlier(event.id)) return
        return this.#endCall(this.#calls.find(event.id, writer.openCalls), event)
      case 'tool-call': {
        const call = await this.#startCall(event)
        if (call === undefined) return
        await writer.growCall(call, event.arguments)
        return this.#endCall(call, event)
      }
      case 'tool-result':
        return this.#settle(this.#calls.idOf(event.toolCallId), event.outcome, event.metadata)
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

  /** Nothing is written where the provider only runs now what it asked about before: that call has begun, and gets the result. */
  async #startCall({ id, name, providerExecuted, approval }: StartedCall): Promise<WrittenCall | undefined> {
    const earlier = approval?.state === 'answered' ? callAskedAbout(this.#history, approval.id) : undefined
    if (earlier !== undefined) {
      this.#calls.continueEarlier(id, earlier)
      return undefined
    }
    const approvalId = providerExecuted && approval?.state === 'requested' ? approval.id : undefined
    if (approvalId === '' || (approvalId?.length ?? 0) > 256)
      throw modelFailed('The provider asked for an approval without a usable id.')
    if (isReserved(name))
      this.#scope.settings.warn(`The model called ${name}, which is not for it to call; it is refused.`)
    const call = await this.#writer.startCall(this.#calls.uniqueId(id), name, {
      providerExecuted,
      approvalId,
    })
    this.#calls.begin(id, call)
    return call
  }

  /** The end of a call is held back until the gate has decided: it carries the token of the request. */
  async #endCall(call: WrittenCall, { signature, metadata }: Omit<CallEnd, 'token'>): Promise<void> {
    const end = { signature, metadata }
    const { runTools } = this.#scope.settings
    if (call.providerExecuted && (call.approvalId === undefined || !runTools))
      return this.#writer.endCall(call, end)
    if (!runTools) {
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
        this.#running.push(this.#ask(decision.request))
        return
      case 'run':
        this.#running.push(this.#execute(id, decision))
        return
      default:
        return decision satisfies never
    }
  }

  async #execute(id: string, decision: Extract<FreshDecision, { kind: 'run' }>): Promise<void> {
    const result = await this.#scope.limit(() => runFresh(this.#scope, decision, this.#history))
    switch (result.kind) {
      case 'outcome':
        return this.#settle(id, result.outcome)
      case 'ask':
        return this.#ask(result.request)
      case 'threw':
        return this.#fail(result.error)
      default:
        return result satisfies never
    }
  }

  /** Over a live channel the answer is waited for here, beside whatever else the step does; without one the run ends with it. */
  async #ask(request: ApprovalRequest): Promise<void> {
    const { answers } = this.#scope
    const written = this.#writer.writtenCall(request.toolCallId)
    if (answers === undefined || written === undefined) this.#asked.push(request)
    await emitRequest(this.#scope, request, this.#writer.messageId)
    if (answers === undefined || written === undefined) return
    const message = { id: this.#writer.messageId, role: 'assistant' as const, toolCalls: [written] }
    const site = { call: written, message, index: this.#history.length, movedOn: false }
    const asked = { site, request, issued: recordsOf(this.#scope), patience: this.#patience }
    try {
      await this.#end(request, await awaitAnswer(this.#scope, answers, asked, this.#history))
    } catch (error) {
      this.#fail(modelFailed('An answer could not be carried out.', error))
    }
  }

  async #end(request: ApprovalRequest, ending: LiveEnding): Promise<void> {
    const { toolCallId, toolName } = request
    if (ending.refusal !== undefined) await emitRefusal(this.#scope, ending.refusal)
    switch (ending.kind) {
      case 'result':
        return this.#settle(toolCallId, ending.outcome)
      case 'handed-out':
        this.#clientCalls.push(toolCallId)
        return this.#scope.emit(readyEvent({ toolCallId, toolName, input: ending.input }))
      case 'client':
        this.#clientCalls.push(toolCallId)
        return
      case 'forwarded':
        this.#approved.add(toolCallId)
        return
      case 'open':
        this.#asked.push(request)
        return
      case 'threw':
        return this.#fail(ending.error)
      default:
        return ending satisfies never
    }
  }

  /** The run ends with it once the others are told; nobody is waited for. */
  #fail(error: CountersignError): void {
    this.#threw ??= error
    this.#failed.abort()
  }

  async #settle(toolCallId: string, outcome: ToolOutcome, provider?: ProviderMetadata): Promise<void> {
    const { settings } = this.#scope
    const own = provider && { provider: { [providerOf(settings.model)]: provider } }
    const message = resultMessage(settings.generateId(), toolCallId, outcome, own)
    this.#results.set(toolCallId, message)
    await emitResult(this.#scope, message)
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
