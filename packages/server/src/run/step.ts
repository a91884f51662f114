import {
  type AGUIEvent,
  CountersignError,
  isCountersignError,
  type Message,
  type ToolCall,
  type ToolMessage,
} from '@countersign/core'
import { type ForwardClaims, type TakenForwards, takeForwards } from '../answers/forward.js'
import { interruptedOutcome, toStored } from '../answers/outcome.js'
import { isId } from '../encoding/ids.js'
import { untilAborted } from '../encoding/signals.js'
import type { ApprovalRequest } from '../gate/ask.js'
import type { Forwarded, ForwardedCalls, ForwardedHistory } from '../history/forwarded.js'
import { callAskedAbout, placeResults, resultMessage } from '../history/history.js'
import { toModelMessages } from '../history/model-messages.js'
import {
  type FinishReason,
  type ModelEvent,
  type ModelRequest,
  type ProviderMetadata,
  providerOf,
  usageLabels,
} from '../model/model.js'
import { readModelFailure } from '../model/model-error.js'
import { readOutput, type StructuredOutput } from '../scope/output.js'
import type { RunScope } from '../scope/scope.js'
import { isReserved } from '../tools/toolkit.js'
import { emitResult } from './emit.js'
import { decideFresh } from './fresh-calls.js'
import { observeModel } from './observe.js'
import { type PreparedStep, preparedStep, type StepStart } from './prepare-step.js'
import { StepCalls } from './step-calls.js'
import { StepWork } from './step-work.js'
import { type CallEnd, StepWriter, type WrittenCall } from './step-writer.js'
import { type ModelWatch, watchModel } from './timeouts.js'

export interface StepResult {
  /** The model's own messages, without results. */
  readonly messages: readonly Message[]
  readonly results: readonly ToolMessage[]
  readonly asked: readonly ApprovalRequest[]
  readonly clientCalls: readonly string[]
  /** Calls that the provider has just been allowed to run. */
  readonly forwarded: ReadonlyMap<string, Forwarded>
  readonly metadata: ProviderMetadata
  readonly output: StructuredOutput | undefined
  readonly ending: StepEnding
}

type StepEnding =
  /** `openCalls`: how many calls have an end that the model has not seen yet. */
  | { readonly kind: 'finished'; readonly reason: FinishReason; readonly openCalls: number }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'failed'; readonly error: unknown }

/** Calls the model once: its events are sent as they arrive, and each call is decided as soon as its arguments are complete. */
export async function runStep(
  scope: RunScope,
  history: ForwardedHistory,
  usedIds: Set<string>,
  place: Omit<StepStart, 'messageId'>,
): Promise<StepResult> {
  const taken = await takeForwards(scope, history.forwarded)
  try {
    const known = await emitForwardedResults(scope, history.forwarded, taken)
    const open = new Set(taken.claims.open)
    const forwarded = new Map([...history.forwarded].filter(([call]) => open.has(call)))
    const messages = placeResults(history.messages, known)
    const start = { ...place, messageId: scope.settings.generateId() }
    const prepared = await preparedStep(scope, start, { messages, forwarded })
    const result = await new Step(prepared, start.messageId, forwarded, taken.claims, usedIds).run()
    return { ...result, results: [...known.values(), ...result.results] }
  } finally {
    await taken.claims.release()
  }
}

/** Reports the results that another request has obtained for the same forwarded calls. */
async function emitForwardedResults(
  scope: RunScope,
  forwarded: ForwardedCalls,
  { results }: TakenForwards,
): Promise<ReadonlyMap<ToolCall, ToolMessage>> {
  const known = new Map<ToolCall, ToolMessage>()
  for (const [call, outcome] of results) {
    const own = { decided: forwarded.get(call)?.decided }
    const message = resultMessage(scope.settings.generateId(), call.id, outcome, own)
    known.set(call, message)
    await emitResult(scope, message)
  }
  return known
}

type ProvidersResult = Extract<ModelEvent, { type: 'tool-result' }>
type StartedCall = Extract<ModelEvent, { type: 'tool-call-start' | 'tool-call' }>

class Step {
  readonly #scope: RunScope
  readonly #writer: StepWriter
  readonly #calls: StepCalls
  readonly #work: StepWork
  readonly #sources: AGUIEvent[] = []
  #metadata: ProviderMetadata = {}
  #finish: FinishReason | undefined
  #firstEventAt: number | undefined

  constructor(
    private readonly prepared: PreparedStep,
    messageId: string,
    private readonly forwarded: ForwardedCalls,
    private readonly claims: ForwardClaims,
    usedIds: Set<string>,
  ) {
    const { scope, history } = prepared
    this.#scope = scope
    this.#calls = new StepCalls(usedIds)
    const { generateId, model, output } = scope.settings
    this.#writer = new StepWriter(scope.emit, generateId, messageId, providerOf(model), output !== undefined)
    this.#work = new StepWork(scope, this.#writer, history)
  }

  async run(): Promise<StepResult> {
    if (!this.#scope.stop.aborted) await this.#callModel()
    const output = await this.#readOutput()
    await this.#writer.close(output?.verdict)
    for (const source of this.#sources) await this.#scope.emit(source)
    await this.#work.done()
    if (this.#ending(this.#scope.stop.aborted, this.#work.failure).kind === 'finished')
      await this.#work.handOut()
    const { results, asked, clientCalls, forwarded } = this.#work
    const stopped = this.#scope.stop.aborted
    if (this.#work.failure === undefined || stopped) await this.#abandonOpenCalls()
    return {
      messages: this.#writer.messages(),
      results: [...results.values()],
      asked,
      clientCalls,
      forwarded,
      metadata: this.#metadata,
      output,
      ending: this.#ending(stopped, this.#work.failure),
    }
  }

  async #callModel(): Promise<void> {
    const request = this.#request()
    const { broken } = await observeModel(this.#scope, request, async () => ({
      broken: await this.#stream(request),
      finishReason: this.#finish,
      firstEventAt: this.#firstEventAt,
      messages: this.#writer.messages(),
    }))
    if (broken !== undefined) this.#work.fail(broken)
    // Even if the request failed, the provider may have received it.
    for (const call of this.claims.open) {
      const decided = this.forwarded.get(call)?.decided
      await this.claims.end(call, { type: 'interrupted' })
      await this.#work.settle(call.id, interruptedOutcome(), { decided })
    }
  }

  #ending(stopped: boolean, failure: StepWork['failure']): StepEnding {
    // If the step only stopped waiting for answers, it ends as it would have without a live channel: with its open requests.
    const { answers } = this.#scope
    const onlyWaited = answers !== undefined && this.#work.asked.length > 0 && this.#finish !== undefined
    if (stopped && !onlyWaited) return { kind: 'stopped' }
    if (failure !== undefined) return { kind: 'failed', error: failure.error }
    return { kind: 'finished', reason: this.#finish ?? 'stop', openCalls: this.#openCalls }
  }

  get #openCalls(): number {
    const { runTools } = this.#scope.settings
    return this.#calls.written.filter(
      ({ providerExecuted, approvalId }) => !providerExecuted || (runTools && approvalId !== undefined),
    ).length
  }

  /** The structured reply, if this step is the run's last. One that does not fit is the step's failure. */
  async #readOutput(): Promise<StructuredOutput | undefined> {
    const { output } = this.#scope.settings
    const reason = this.#finish
    if (output === undefined || reason === undefined || reason === 'pause') return undefined
    if (this.#openCalls > 0 || this.#work.failure !== undefined || this.#scope.stop.aborted) return undefined
    try {
      const read = await untilAborted(
        () => readOutput(output, this.#writer.content, reason),
        this.#scope.stop,
      )
      return read.left ? undefined : read.value
    } catch (error) {
      this.#work.fail(error)
      return undefined
    }
  }

  #request(): ModelRequest {
    const { settings, toolkit } = this.#scope
    return {
      ...(settings.system !== undefined && { system: settings.system }),
      messages: toModelMessages(
        this.prepared.sent.messages,
        providerOf(settings.model),
        this.prepared.sent.forwarded,
      ),
      tools: toolkit.forModel,
      ...(settings.output !== undefined && { output: settings.output.json }),
    }
  }

  async #stream(request: ModelRequest): Promise<CountersignError | undefined> {
    const { settings, stop } = this.#scope
    const watch = watchModel(stop, settings.timeouts.model)
    try {
      await Promise.race([this.#read(request, watch), watch.left])
    } catch (error) {
      return stop.aborted ? undefined : failureOf(error)
    } finally {
      watch.end()
    }
    if (stop.aborted || this.#finish !== undefined) return undefined
    return watch.timedOut ?? modelFailed('The model broke off in the middle of its answer.')
  }

  async #read(request: ModelRequest, watch: ModelWatch): Promise<void> {
    const { settings } = this.#scope
    for await (const event of settings.model.stream(request, { signal: watch.signal })) {
      if (watch.signal.aborted) return
      watch.heard()
      this.#firstEventAt ??= settings.now()
      if (this.#isOneTooMany(event)) {
        settings.warn(
          `The model made more than ${settings.limits.callsPerMessage} calls in one turn (\`limits.callsPerMessage\`). The rest is dropped; the run continues with their results.`,
        )
        this.#finish = 'tool_calls'
        return
      }
      const taken = this.#take(event)
      // Most deltas wait for nothing, and awaiting nothing costs more than writing one.
      if (taken !== undefined) await taken
      watch.waits()
    }
  }

  #isOneTooMany({ type }: ModelEvent): boolean {
    return (
      (type === 'tool-call-start' || type === 'tool-call') &&
      this.#calls.count >= this.#scope.settings.limits.callsPerMessage
    )
  }

  /** Returns a promise if the next event must wait. */
  #take(event: ModelEvent): Promise<unknown> | undefined {
    const writer = this.#writer
    switch (event.type) {
      case 'text-delta':
        return writer.text(event.delta)
      case 'text-end':
        writer.endText(event.metadata)
        return undefined
      case 'reasoning-delta':
        return writer.reasoning(event.delta)
      case 'reasoning-end':
        return writer.endReasoning(event.signature, event.metadata)
      case 'tool-call-start':
        return this.#startCall(event)
      case 'tool-call-delta':
        if (this.#calls.isEarlier(event.id)) return undefined
        return writer.growCall(this.#calls.find(event.id, writer.openCalls), event.delta)
      case 'tool-call-end':
        if (this.#calls.isEarlier(event.id)) return undefined
        return this.#endCall(this.#calls.find(event.id, writer.openCalls), event)
      case 'tool-call':
        return this.#wholeCall(event)
      case 'tool-result':
        return this.#settleProviders(event)
      case 'source':
        return this.#emitSource(event.source)
      case 'usage':
        this.#scope.usage.push({ ...usageLabels(this.#scope.settings.model), ...event.usage })
        return undefined
      case 'metadata':
        this.#metadata = { ...this.#metadata, ...event.metadata }
        return undefined
      case 'finish':
        this.#finish = event.reason
        return undefined
      default:
        return event satisfies never
    }
  }

  /** A source would divide the text, so it waits for the end of a structured one. */
  async #emitSource(source: Extract<ModelEvent, { type: 'source' }>['source']): Promise<void> {
    const value = { messageId: this.#writer.messageId, ...source }
    const event: AGUIEvent = { type: 'CUSTOM', name: 'source', value }
    if (this.#scope.settings.output === undefined) return this.#scope.emit(event)
    this.#sources.push(event)
  }

  async #wholeCall(event: Extract<ModelEvent, { type: 'tool-call' }>): Promise<void> {
    const call = await this.#startCall(event)
    if (call === undefined) return
    await this.#writer.growCall(call, event.arguments)
    return this.#endCall(call, event)
  }

  /** The result of a call that the provider has run, now or after it requested approval in an earlier step. */
  async #settleProviders({ toolCallId, outcome, metadata: provider }: ProvidersResult): Promise<void> {
    const id = this.#calls.idOf(toolCallId)
    if (this.#work.results.has(id))
      return this.#scope.settings.warn(`The provider sent a second result of ${id}; it is dropped.`)
    const [call, allowed] = [...this.forwarded].findLast(([{ id: one }]) => one === id) ?? []
    if (call !== undefined) await this.claims.end(call, toStored(outcome))
    return this.#work.settle(id, outcome, { provider, decided: allowed?.decided })
  }

  /** Writes nothing if the provider now runs a call of an earlier step, which it had requested approval for: that call gets the result. */
  async #startCall({ id, name, providerExecuted, approval }: StartedCall): Promise<WrittenCall | undefined> {
    const earlier =
      approval?.state === 'answered' ? callAskedAbout(this.prepared.history, approval.id) : undefined
    if (earlier !== undefined) {
      this.#calls.continueEarlier(id, earlier)
      return undefined
    }
    const approvalId = providerExecuted && approval?.state === 'requested' ? approval.id : undefined
    if (approvalId !== undefined && !isId(approvalId))
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

  /** The end of a call waits for the gate's decision, because it carries the token of the approval request. */
  async #endCall(call: WrittenCall, { signature, metadata }: Omit<CallEnd, 'token'>): Promise<void> {
    const end = { signature, metadata }
    const { runTools } = this.#scope.settings
    if (call.providerExecuted && (call.approvalId === undefined || !runTools))
      return this.#writer.endCall(call, end)
    if (!runTools) {
      this.#work.leaveToClient(call.id)
      return this.#writer.endCall(call, end)
    }
    const decision = await decideFresh(this.#scope, call, this.prepared.history)
    if (decision.kind === 'refused') {
      const code = decision.outcome.code ?? decision.outcome.kind
      this.#scope.observer?.report({ type: 'call-refused', toolCallId: call.id, toolName: call.name, code })
    }
    const token = decision.kind === 'ask' ? decision.request.approval.token : undefined
    await this.#writer.endCall(call, { ...end, token })
    return this.#work.carryOut(call.id, decision)
  }

  /** Closes calls that a stopped model left with incomplete arguments: a finished run must leave nothing open. */
  async #abandonOpenCalls(): Promise<void> {
    for (const call of this.#writer.openCalls) {
      await this.#writer.endCall(call)
      await this.#work.settle(call.id, {
        kind: 'cancelled',
        reason: 'the arguments were not completed',
        code: 'incomplete-arguments',
      })
    }
  }
}

/** An adapter's own error says more: what failed, and whether to retry. */
function failureOf(error: unknown): CountersignError {
  const isTold = isCountersignError(error) && readModelFailure(error) !== undefined
  return isTold ? error : modelFailed('The model failed.', error)
}

function modelFailed(message: string, cause?: unknown): CountersignError {
  return new CountersignError('model-failed', message, {}, cause)
}
