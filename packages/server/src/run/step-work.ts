import type { ApprovalDecided, Message, ToolMessage } from '@countersign/core'
import type { CallOutcome } from '../answers/outcome.js'
import { NO_RECORDS } from '../answers/records.js'
import { anySignal } from '../encoding/signals.js'
import type { ApprovalRequest } from '../gate/ask.js'
import type { Forwarded } from '../history/forwarded.js'
import { resultMessage } from '../history/history.js'
import { type ProviderMetadata, providerOf } from '../model/model.js'
import type { ToolOutcome } from '../outcome.js'
import type { RunScope } from '../scope/scope.js'
import { emitRefusal, emitRequest, emitResult, readyEvent } from './emit.js'
import { type FreshDecision, type FreshResult, handOutFresh, runFresh } from './fresh-calls.js'
import { awaitAnswer } from './live-answer.js'
import type { StepWriter, WrittenCall } from './step-writer.js'

/** Processes a step's calls while the model still streams: permitted ones run in parallel, approval is requested for the others. */
export class StepWork {
  readonly results = new Map<string, ToolMessage>()
  readonly asked: ApprovalRequest[] = []
  readonly clientCalls: string[] = []
  /** Calls that the provider has just been allowed to run. */
  readonly forwarded = new Map<string, Forwarded>()
  readonly #running: Promise<void>[] = []
  readonly #toHandOut: Extract<FreshDecision, { kind: 'client' }>[] = []
  readonly #failed = new AbortController()
  /** Ends the wait for the user over a live channel. */
  readonly #waitSignal: AbortSignal
  #failure: { readonly error: unknown } | undefined

  constructor(
    private readonly scope: RunScope,
    private readonly writer: StepWriter,
    private readonly history: readonly Message[],
  ) {
    this.#waitSignal = anySignal([scope.stop, this.#failed.signal])
  }

  /** The first error that is to end the run. */
  get failure(): { readonly error: unknown } | undefined {
    return this.#failure
  }

  /** Ends the run with this error once the running work has ended; the wait for the user stops at once. */
  fail(error: unknown): void {
    this.#failure ??= { error }
    this.#failed.abort()
  }

  leaveToClient(id: string): void {
    this.clientCalls.push(id)
  }

  async carryOut(id: string, decision: FreshDecision): Promise<void> {
    switch (decision.kind) {
      case 'refused':
        return this.settle(id, decision.outcome, decision)
      case 'client':
        if (decision.isStanding) this.#toHandOut.push(decision)
        else this.leaveToClient(id)
        return
      case 'ask':
        return this.#begin(this.#ask(decision.request))
      case 'run':
        return this.#begin(this.#execute(decision))
      default:
        return decision satisfies never
    }
  }

  async settle(
    toolCallId: string,
    outcome: ToolOutcome,
    said: {
      readonly provider?: ProviderMetadata | undefined
      readonly decided?: ApprovalDecided | undefined
    } = {},
  ): Promise<void> {
    const { settings } = this.scope
    const { decided, provider } = said
    const own = { decided, provider: provider && { [providerOf(settings.model)]: provider } }
    const message = resultMessage(settings.generateId(), toolCallId, outcome, own)
    this.results.set(toolCallId, message)
    await emitResult(this.scope, message).catch((error: unknown) => {
      this.results.delete(toolCallId)
      this.fail(error)
    })
  }

  async done(): Promise<void> {
    await Promise.all(this.#running)
  }

  /** Hands out the client tools that need a last check, once nothing else of the step runs. A step that fails or stops hands out none. */
  async handOut(): Promise<void> {
    for (const decision of this.#toHandOut)
      this.#begin(
        handOutFresh(this.scope, decision, this.history).then((end) => this.#end(decision.call, end)),
      )
    await this.done()
  }

  #begin(work: Promise<void>): void {
    this.#running.push(work.catch((error: unknown) => this.fail(error)))
  }

  async #execute(decision: Extract<FreshDecision, { kind: 'run' }>): Promise<void> {
    const end = await this.scope.limit(() =>
      runFresh(this.scope, decision, this.history, this.writer.messageId),
    )
    return this.#end(decision.call, end)
  }

  /** With a live channel, waits here for the answer, in parallel with the rest of the step; without one, the run ends with the request. */
  async #ask(request: ApprovalRequest): Promise<void> {
    const { answers } = this.scope
    const written = this.writer.writtenCall(request.toolCallId)
    if (answers === undefined || written === undefined) this.asked.push(request)
    await emitRequest(this.scope, request, this.writer.messageId)
    if (answers === undefined || written === undefined) return
    const message = { id: this.writer.messageId, role: 'assistant' as const, toolCalls: [written] }
    const site = { call: written, message, index: this.history.length, superseded: false }
    const asked = { site, request, issued: NO_RECORDS, waitSignal: this.#waitSignal }
    const end = await awaitAnswer(this.scope, answers, asked, this.history)
    if (end.refusal !== undefined) await emitRefusal(this.scope, end.refusal)
    await this.#end({ id: request.toolCallId, name: request.toolName }, end)
  }

  async #end({ id, name }: Pick<WrittenCall, 'id' | 'name'>, end: FreshResult | CallOutcome): Promise<void> {
    switch (end.kind) {
      case 'result':
        return this.settle(id, end.outcome, end)
      case 'handed-out':
        this.leaveToClient(id)
        return this.scope.emit(readyEvent({ ...end, toolCallId: id, toolName: name }))
      case 'client':
        return this.leaveToClient(id)
      case 'forwarded':
        this.forwarded.set(id, end)
        return
      case 'open':
        this.asked.push(end.request)
        return
      case 'ask':
      case 'asked-again':
        return this.#ask(end.request)
      case 'threw':
        return this.fail(end.error)
      default:
        return end satisfies never
    }
  }
}
