import {
  type ApprovalDecided,
  CountersignError,
  type Message,
  type ResumeEntry,
  type ToolCall,
  type ToolMessage,
} from '@countersign/core'
import { type OpenCallResult, resultOfOpenCall } from '../answers/abandoned.js'
import { readAnswers } from '../answers/answers.js'
import { type ReadHistory, readHistory } from '../answers/issued.js'
import { readProjected } from '../answers/projected.js'
import type { Refusal } from '../answers/refusals.js'
import type { Resolution } from '../answers/resolution.js'
import { resolveVerdicts } from '../answers/resolve.js'
import { correctResults } from '../answers/settled.js'
import { handedOutOutcome } from '../answers/stored-outcome.js'
import { type VerifiedVerdict, verifyAnswers } from '../answers/verdicts.js'
import { APPROVAL_TOOL } from '../gate/approval-tool.js'
import type { ApprovalRequest } from '../gate/ask.js'
import { type Forwarded, type ForwardedHistory, forwardCalls } from '../history/forwarded.js'
import {
  type CallSite,
  isProviderExecuted,
  MOVED_ON,
  placeResults,
  providerApprovalOf,
  resultMessage,
} from '../history/history.js'
import { exceeds } from '../limits.js'
import { failed, type ToolOutcome } from '../outcome.js'
import { planApprovals } from '../plan/plan.js'
import type { RunScope } from '../scope/scope.js'
import { emitQuestion, emitRequest } from './emit-request.js'
import { emitRefusal, emitResult, type ReadyTool, readyEvent } from './emit-result.js'
import { awaitAnswer, type LiveEnding } from './live-answer.js'

/** A conversation after the answers of a request were carried out; in `messages`, every result is in its place. */
export interface Resumed extends ForwardedHistory {
  /** Approval requests that are still open; until they are answered, the model is not called. */
  readonly open: readonly ApprovalRequest[]
  /** Calls that wait for the client. */
  readonly clientCalls: readonly string[]
  /** The request brought answers, but none changed this conversation: each was late, or a repeat. */
  readonly hadNoEffect: boolean
  /** The error of a tool that ends the run when it throws. */
  readonly error?: CountersignError | undefined
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
  const read = await correctResults(scope, await readHistory(scope, history))
  const projected = scope.settings.approvals.askAsTool ? readProjected(read.sites, scope) : []
  const { limits } = scope.settings
  if (projected.length > limits.answers)
    throw exceeds('answers', limits, ['A request', `results of ${APPROVAL_TOOL} for open calls`])
  const answers = [...readAnswers(resume, read.sites, scope.context), ...projected]
  const { verdicts, refusals } = await verifyAnswers(scope, answers, read.issued)
  const progress = new Progress(scope, read)
  for (const message of read.corrected) await emitResult(scope, message)
  for (const refusal of refusals) await progress.refuse(refusal)
  const ordered = inCallOrder(verdicts, read.sites)
  for await (const resolution of resolveVerdicts(scope, ordered, read.messages))
    await progress.take(resolution)
  await progress.closeAbandoned()
  await progress.answered()
  return { ...progress.resumed(), hadNoEffect: answers.length > 0 && !progress.hasNews }
}

/** Sorts verified verdicts into the order of their calls. Calls without a verdict are decided afterwards. */
function inCallOrder(
  verdicts: readonly VerifiedVerdict[],
  sites: readonly CallSite[],
): readonly VerifiedVerdict[] {
  const bySite = new Map(verdicts.map((verdict) => [verdict.site, verdict]))
  const calls = sites.flatMap((site) => {
    const verdict = bySite.get(site)
    return verdict === undefined ? [] : [{ toolCallId: site.call.id, approvalId: verdict.approvalId }]
  })
  const plan = planApprovals(calls, verdicts, { onMissingVerdict: 'pending' })
  return [...plan.approved, ...plan.rejected].flatMap(({ verdict }) =>
    verdict === undefined ? [] : [verdict],
  )
}

/** Whether the provider runs the call without requesting approval. */
function isProvidersOwn(call: ToolCall): boolean {
  return isProviderExecuted(call) && providerApprovalOf(call) === undefined
}

class Progress {
  readonly #scope: RunScope
  readonly #read: ReadHistory
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
  #error: CountersignError | undefined
  #unsettled: CountersignError | undefined

  constructor(scope: RunScope, read: ReadHistory) {
    this.#scope = scope
    this.#read = read
    this.#callIds = new Set(read.sites.map(({ call }) => call.id))
  }

  async refuse(refusal: Refusal): Promise<void> {
    if (refusal.site !== undefined) this.#refusals.set(refusal.site, refusal)
    await emitRefusal(this.#scope, refusal)
  }

  async take(resolution: Resolution): Promise<void> {
    const { site } = resolution
    switch (resolution.kind) {
      case 'result':
        if (resolution.refusal !== undefined) await this.refuse(resolution.refusal)
        return this.#settle(site, resolution.outcome, resolution.decided)
      case 'handed-out':
        if (site.result !== undefined) return
        // The client runs only the tools of the current turn: the conversation would wait for this one forever.
        if (site.superseded) {
          const outcome = resolution.isAgain ? handedOutOutcome() : failed('cancelled', MOVED_ON)
          return this.#settle(site, outcome, resolution.decided)
        }
        return this.#handOut(site, resolution)
      case 'forwarded':
        this.#settled.add(site)
        if (site.result === undefined) this.#forwarded.set(site.call, resolution)
        return
      case 'refused':
        return this.refuse(resolution.refusal)
      case 'threw':
        this.#settled.add(site)
        this.#error ??= resolution.error
        return
      default:
        return resolution satisfies never
    }
  }

  async closeAbandoned(): Promise<void> {
    const { messages, sites, issued } = this.#read
    if (this.#error !== undefined) return
    for (const site of sites) {
      if (site.result !== undefined || this.#settled.has(site) || isProvidersOwn(site.call)) continue
      // The call that represents an approval request stays open as long as the request.
      if (this.#scope.settings.approvals.askAsTool && site.call.function.name === APPROVAL_TOOL) continue
      const refusal = this.#refusals.get(site)
      await this.#accept(await resultOfOpenCall(this.#scope, site, issued, refusal, messages), refusal)
    }
  }

  /** Resolves when the run has stopped waiting for all approval requests. */
  async answered(): Promise<void> {
    await Promise.all(this.#waiting)
  }

  /** Whether a call got an outcome that the history does not have. */
  get hasNews(): boolean {
    return this.#results.size + this.#replaced.size + this.#clientCalls.length + this.#forwarded.size > 0
  }

  resumed(): Omit<Resumed, 'hadNoEffect'> {
    const replaced = this.#read.messages.map((message) => this.#replaced.get(message) ?? message)
    const placed = placeResults(replaced, this.#results)
    return {
      ...forwardCalls(placed, (call) => this.#forwarded.get(call)),
      open: this.#open,
      clientCalls: this.#clientCalls,
      error: this.#error,
      unsettled: this.#unsettled,
    }
  }

  async #accept(fate: OpenCallResult, refusal: Refusal | undefined): Promise<void> {
    switch (fate.kind) {
      case 'result':
        return this.#settle(fate.site, fate.outcome, fate.decided)
      case 'open':
        // The user has answered and now waits for the model: approval is not requested again.
        if (refusal?.fate === 'open' && (refusal.code === 'call-running' || fate.site.superseded)) {
          this.#unsettled ??= new CountersignError(refusal.code, refusal.message)
          return
        }
        // If a history contains one approval request twice, one of them is forged.
        if (this.#asked.has(fate.request.approval.id)) {
          return this.#settle(
            fate.site,
            failed('cancelled', 'the approval is not valid', 'approval-tampered'),
          )
        }
        return this.#ask(fate)
      case 'client':
        this.#clientCalls.push(fate.site.call.id)
        return
      case 'forwarded':
        return this.take(fate)
      default:
        return fate satisfies never
    }
  }

  /** With a live channel, the run waits for the user's own approval request; any other ends the run. */
  async #ask({ site, request, isAnothers }: Extract<OpenCallResult, { kind: 'open' }>): Promise<void> {
    const { answers, stop } = this.#scope
    this.#asked.add(request.approval.id)
    if (this.#callIds.has(request.approval.id)) await emitQuestion(this.#scope, request)
    else await emitRequest(this.#scope, request, site.message.id)
    if (answers === undefined || isAnothers) {
      this.#open.push(request)
      return
    }
    const { messages, issued } = this.#read
    const ending = awaitAnswer(this.#scope, answers, { site, request, issued, waitSignal: stop }, messages)
    const ended = ending.then((end) => this.#end(site, request, end))
    // Errors are thrown once all are awaited; without this they would be unhandled until then.
    ended.catch(() => {})
    this.#waiting.push(ended)
  }

  async #end(site: CallSite, request: ApprovalRequest, ending: LiveEnding): Promise<void> {
    if (ending.refusal !== undefined) await this.refuse(ending.refusal)
    switch (ending.kind) {
      case 'open':
        this.#open.push(request)
        return
      case 'client':
        this.#clientCalls.push(site.call.id)
        return
      case 'result':
        return this.#settle(site, ending.outcome, ending.decided)
      default:
        return this.take({ ...ending, site })
    }
  }

  async #handOut(site: CallSite, ready: Pick<ReadyTool, 'input' | 'decided'>): Promise<void> {
    const { id: toolCallId, function: called } = site.call
    this.#settled.add(site)
    this.#clientCalls.push(toolCallId)
    await this.#scope.emit(readyEvent({ ...ready, toolCallId, toolName: called.name }))
  }

  /** Sends a result only if the client does not have it, or has a different one. */
  async #settle(site: CallSite, outcome: ToolOutcome, decided?: ApprovalDecided): Promise<void> {
    this.#settled.add(site)
    const { call, result } = site
    const id = result?.id ?? this.#scope.settings.generateId()
    const message = resultMessage(id, call.id, outcome, { decided })
    if (result !== undefined) {
      if (result.content === message.content) return
      this.#replaced.set(result, message)
    } else {
      this.#results.set(call, message)
    }
    await emitResult(this.#scope, message)
  }
}
