import {
  type ApprovalDecided,
  CountersignError,
  isRecord,
  type Message,
  parseJson,
  type ResumeEntry,
  type ToolCall,
  type ToolMessage,
} from '@countersign/core'
import { approvalIdOf, readAnswers, readProjected } from '../answers/answers.js'
import { outcomeOfOpenCall } from '../answers/open-call.js'
import { type CallOutcome, handedOutOutcome, notClosed, type Refusal } from '../answers/outcome.js'
import { type ReadHistory, readHistory } from '../answers/records.js'
import { settleVerdicts } from '../answers/settle.js'
import { type VerifiedVerdict, verifyAnswers } from '../answers/verify.js'
import { unlessLeft } from '../encoding/hooks.js'
import { anySignal } from '../encoding/signals.js'
import { APPROVAL_TOOL } from '../gate/approval-tool.js'
import type { ApprovalRequest } from '../gate/ask.js'
import { type Forwarded, type ForwardedHistory, forwardCalls } from '../history/forwarded.js'
import { type CallSite, isProvidersOwn, placeResults, resultMessage } from '../history/history.js'
import { exceeds } from '../limits.js'
import { failed, type ToolOutcome } from '../outcome.js'
import type { RunScope } from '../scope/scope.js'
import { emitQuestion, emitRefusal, emitRequest, emitResult, readyEvent } from './emit.js'
import { awaitAnswer } from './live-answer.js'

/** A conversation after the answers of a request were carried out; in `messages`, every result is in its place. */
export interface Resumed extends ForwardedHistory {
  /** Approval requests that are still open; until they are answered, the model is not called. */
  readonly open: readonly ApprovalRequest[]
  readonly clientCalls: readonly string[]
  /** The request brought answers, but none changed this conversation: each was late, or a repeat. */
  readonly hadNoEffect: boolean
  /** What ends the run: a tool that threw such an error, or a result that could not be sent. */
  readonly error?: unknown
  /** An answer could not be carried out now, and approval is not requested again: the model can't be called. */
  readonly unsettled?: CountersignError | undefined
}

/**
 * Everything that happens before the model is called: answers are read, matched, verified and carried out, and abandoned
 * calls are closed.
 */
export async function resumeConversation(
  scope: RunScope,
  history: readonly Message[],
  resume: readonly ResumeEntry[],
): Promise<Resumed> {
  const read = await readHistory(scope, history)
  const projected = scope.settings.approvals.askAsTool ? readProjected(read.sites, scope) : []
  const { limits } = scope.settings
  if (projected.length > limits.answers)
    throw exceeds('answers', limits, ['A request', `results of ${APPROVAL_TOOL} for open calls`])
  const answers = [...readAnswers(resume, read.sites, scope.context), ...projected]
  const { verdicts, refusals } = await verifyAnswers(scope, answers, read.issued)
  const progress = new Progress(scope, read)
  for (const message of read.corrected) await progress.send(message)
  for (const refusal of refusals) await progress.take(refusal)
  // Of two answers about one call, that to the request which the call names counts: the other request was replaced, or has replaced it.
  const isNamed = ({ approvalId, site }: VerifiedVerdict) => approvalId === approvalIdOf(site)
  const inTurn = verdicts.toSorted((one, other) => Number(isNamed(one)) - Number(isNamed(other)))
  const bySite = new Map(inTurn.map((verdict) => [verdict.site, verdict]))
  const inOrder = read.sites.flatMap((site) => bySite.get(site) ?? [])
  for await (const outcome of settleVerdicts(scope, inOrder, read.messages)) await progress.take(outcome)
  // If the run has stopped and a hook was left, the rest stays open: the next run finds it.
  await progress.closeAbandoned().catch(unlessLeft)
  await progress.answered()
  return { ...progress.resumed(), hadNoEffect: answers.length > 0 && !progress.hasNews }
}

class Progress {
  readonly #callIds: ReadonlySet<string>
  readonly #refusals = new Map<CallSite, Refusal>()
  readonly #settled = new Set<CallSite>()
  readonly #results = new Map<ToolCall, ToolMessage>()
  readonly #replaced = new Map<Message, ToolMessage>()
  readonly #asked = new Set<string>()
  readonly #waiting: Promise<void>[] = []
  readonly #open: ApprovalRequest[] = []
  readonly #clientCalls: string[] = []
  readonly #forwarded = new Map<ToolCall, Forwarded>()
  readonly #failed = new AbortController()
  /** Ends the wait for the user over a live channel. */
  readonly #waitSignal: AbortSignal
  #error: unknown
  #unsettled: CountersignError | undefined

  constructor(
    private readonly scope: RunScope,
    private readonly read: ReadHistory,
  ) {
    this.#callIds = new Set(read.sites.map(({ call }) => call.id))
    this.#waitSignal = anySignal([scope.stop, this.#failed.signal])
  }

  /** Reports what became of a call. A refused answer leaves its call to {@link closeAbandoned}. */
  async take(outcome: CallOutcome | Refusal): Promise<void> {
    const refusal = outcome.kind === 'refused' ? outcome : outcome.refusal
    if (refusal !== undefined) {
      if (refusal.site !== undefined) this.#refusals.set(refusal.site, refusal)
      await emitRefusal(this.scope, refusal)
    }
    switch (outcome.kind) {
      case 'result':
        return this.#settle(outcome.site, outcome.outcome, outcome.decided)
      case 'handed-out':
        return this.#handOut(outcome)
      case 'forwarded':
        this.#settled.add(outcome.site)
        if (outcome.site.result === undefined) this.#forwarded.set(outcome.site.call, outcome)
        return
      case 'client':
        this.#clientCalls.push(outcome.site.call.id)
        return
      case 'open':
        this.#open.push(outcome.request)
        return
      case 'asked-again':
        this.#settled.add(outcome.site)
        return this.#reopen({ ...outcome, kind: 'open', isAnothers: false }, undefined)
      case 'threw':
        this.#settled.add(outcome.site)
        return this.#fail(outcome.error)
      case 'refused':
        // Some clients append an answer to their history as the call's result: if the ledger can't tell, the model must not see it.
        if (outcome.code === 'ledger-unavailable' && (!outcome.site || outcome.site.result))
          this.#unsettle(outcome)
        return
      default:
        return outcome satisfies never
    }
  }

  async closeAbandoned(): Promise<void> {
    const { messages, sites, issued } = this.read
    if (this.#error !== undefined) return
    for (const site of sites) {
      if (!issued.isWhole && site.result && isAnswerLike(site.result))
        this.#unsettle(notClosed({ approvalId: undefined, site }))
      if (site.result !== undefined || this.#settled.has(site) || isProvidersOwn(site.call)) continue
      // The call that represents an approval request stays open as long as the request.
      if (this.scope.settings.approvals.askAsTool && site.call.function.name === APPROVAL_TOOL) continue
      const refusal = this.#refusals.get(site)
      const outcome = await outcomeOfOpenCall(this.scope, site, issued, refusal, messages)
      // Another answer is still being carried out.
      if (outcome.kind === 'refused') this.#unsettle(outcome)
      await (outcome.kind === 'open' ? this.#reopen(outcome, refusal) : this.take(outcome))
    }
  }

  /** Resolves when the run has stopped waiting for all approval requests. */
  async answered(): Promise<void> {
    // An answer may lead to another request.
    for (const one of this.#waiting) await one
  }

  /** Whether a call got an outcome that the history does not have. */
  get hasNews(): boolean {
    return this.#results.size + this.#replaced.size + this.#clientCalls.length + this.#forwarded.size > 0
  }

  resumed(): Omit<Resumed, 'hadNoEffect'> {
    const { messages } = this.read
    const replaced =
      this.#replaced.size === 0 ? messages : messages.map((message) => this.#replaced.get(message) ?? message)
    const placed = placeResults(replaced, this.#results)
    return {
      ...(this.#forwarded.size === 0
        ? { messages: placed, forwarded: this.#forwarded }
        : forwardCalls(placed, (call) => this.#forwarded.get(call))),
      open: this.#open,
      clientCalls: this.#clientCalls,
      error: this.#error,
      unsettled: this.#unsettled,
    }
  }

  async #reopen(open: Extract<CallOutcome, { kind: 'open' }>, refusal: Refusal | undefined): Promise<void> {
    const { site, request, isAnothers } = open
    const { answers } = this.scope
    // The user has answered and now waits for the model: approval is not requested again.
    if (refusal?.effect === 'open' && (refusal.code === 'call-running' || site.superseded))
      return this.#unsettle(refusal)
    // If a history contains one approval request twice, one of them is forged.
    if (this.#asked.has(request.approval.id))
      return this.#settle(site, failed('cancelled', 'the approval is not valid', 'approval-tampered'))
    this.#asked.add(request.approval.id)
    if (this.#callIds.has(request.approval.id)) await emitQuestion(this.scope, request)
    else await emitRequest(this.scope, request, site.message.id)
    // With a live channel, the run waits for the user's own approval request; any other ends the run.
    if (answers === undefined || isAnothers) return this.take(open)
    const { messages, issued } = this.read
    const asked = { site, request, issued, waitSignal: this.#waitSignal }
    const waiting = awaitAnswer(this.scope, answers, asked, messages)
    const ended = waiting.then((outcome) => this.take(outcome))
    // Errors are thrown once all are awaited; without this they would be unhandled until then.
    ended.catch(() => {})
    this.#waiting.push(ended)
  }

  async #handOut(outcome: Extract<CallOutcome, { kind: 'handed-out' }>): Promise<void> {
    const { site, input, decided, isAgain } = outcome
    if (site.result !== undefined) return
    // A later message closes a call that a page was given before, but not one whose approval came with that message or after it.
    if (site.superseded && isAgain) return this.#settle(site, handedOutOutcome(), decided)
    const { id: toolCallId, function: called } = site.call
    this.#settled.add(site)
    this.#clientCalls.push(toolCallId)
    await this.scope.emit(readyEvent({ input, decided, toolCallId, toolName: called.name }))
  }

  /** Sends a result only if the client does not have it, or has a different one. */
  async #settle(site: CallSite, outcome: ToolOutcome, decided?: ApprovalDecided): Promise<void> {
    this.#settled.add(site)
    const { call, result } = site
    const id = result?.id ?? this.scope.settings.generateId()
    const message = resultMessage(id, call.id, outcome, { decided })
    if (result !== undefined) {
      if (result.content === message.content) return
      this.#replaced.set(result, message)
    } else {
      this.#results.set(call, message)
    }
    await this.send(message)
  }

  /** A result that can't be sent ends the run, once everything that has begun has ended; at once if the run has been stopped. */
  async send(message: ToolMessage): Promise<void> {
    await emitResult(this.scope, message).catch((error: unknown) => {
      if (this.scope.stop.aborted) throw error
      this.#fail(error)
    })
  }

  #unsettle({ code, message }: Refusal): void {
    this.#unsettled ??= new CountersignError(code, message, { isForUsers: true })
  }

  #fail(error: unknown): void {
    this.#error ??= error
    this.#failed.abort()
  }
}

/** Some clients append the user's answer as the result of the call. Only the ledger knows whether that call has run. */
function isAnswerLike({ content }: ToolMessage): boolean {
  const value = typeof content === 'string' ? parseJson(content) : undefined
  return isRecord(value) && typeof value.approved === 'boolean'
}
