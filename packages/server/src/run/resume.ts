import {
  type CountersignError,
  failed,
  type Message,
  type ResumeEntry,
  type ToolCall,
  type ToolMessage,
  type ToolOutcome,
} from '@countersign/core'
import { decideFate, type Fate } from '../answers/abandoned.js'
import { readAnswers } from '../answers/answers.js'
import { type ReadHistory, readHistory } from '../answers/issued.js'
import { planApprovals } from '../answers/plan.js'
import { type Refusal, refusedEvent } from '../answers/refusals.js'
import type { Resolution } from '../answers/resolution.js'
import { resolveVerdicts } from '../answers/resolve.js'
import { type VerifiedVerdict, verifyAnswers } from '../answers/verdicts.js'
import type { ApprovalRequest } from '../gate/ask.js'
import { type CallSite, isProviderExecuted, placeResults, resultMessage } from '../history/history.js'
import { audit } from '../scope/audit.js'
import type { RunScope } from '../scope/scope.js'
import { emitResult } from './emit-result.js'

/** Where a conversation stands once the answers of a request are carried out. */
export interface Resumed {
  /** With every result in its place. */
  readonly messages: readonly Message[]
  /** Requests that still wait for their answer; until then the model is not called. */
  readonly open: readonly ApprovalRequest[]
  /** Calls that wait for the client. */
  readonly clientCalls: readonly string[]
  /** A tool that threw and wants the run to end with it. */
  readonly error?: CountersignError | undefined
}

/**
 * Everything that happens before the model is called: answers are read, matched, verified and carried out, and what was abandoned
 * is closed.
 */
export async function resumeConversation(
  scope: RunScope,
  history: readonly Message[],
  resume: readonly ResumeEntry[],
): Promise<Resumed> {
  const read = await readHistory(scope, history)
  const answers = readAnswers(resume, read.sites)
  const { verdicts, refusals } = await verifyAnswers(scope, answers, read.issued)
  const progress = new Progress(scope, read)
  for (const refusal of refusals) await progress.refuse(refusal)
  const ordered = inCallOrder(verdicts, read.sites)
  for await (const resolution of resolveVerdicts(scope, ordered, read.messages))
    await progress.take(resolution)
  await progress.closeAbandoned()
  return progress.resumed()
}

/** The planner sorts verified verdicts into the order of their calls; what has none is decided afterwards. */
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

class Progress {
  readonly #scope: RunScope
  readonly #read: ReadHistory
  readonly #refusals = new Map<CallSite, Refusal>()
  readonly #settled = new Set<CallSite>()
  readonly #results = new Map<ToolCall, ToolMessage>()
  readonly #replaced = new Map<Message, ToolMessage>()
  readonly #open: ApprovalRequest[] = []
  readonly #clientCalls: string[] = []
  #error: CountersignError | undefined

  constructor(scope: RunScope, read: ReadHistory) {
    this.#scope = scope
    this.#read = read
  }

  async refuse(refusal: Refusal): Promise<void> {
    const { approvalId, site, code } = refusal
    if (site !== undefined) this.#refusals.set(site, refusal)
    const names = site === undefined ? {} : { toolCallId: site.call.id, toolName: site.call.function.name }
    await audit(this.#scope, { event: 'refused', approvalId, ...names, code })
    await this.#scope.emit(refusedEvent(refusal))
  }

  async take(resolution: Resolution): Promise<void> {
    const { site } = resolution
    switch (resolution.kind) {
      case 'result':
        if (resolution.refusal !== undefined) await this.refuse(resolution.refusal)
        return this.#settle(site, resolution.outcome)
      case 'handed-out':
        if (site.result === undefined) await this.#handOut(site, resolution.input)
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
      if (site.result !== undefined || this.#settled.has(site) || isProviderExecuted(site.call)) continue
      await this.#accept(await decideFate(this.#scope, site, issued, this.#refusals.get(site), messages))
    }
  }

  resumed(): Resumed {
    const replaced = this.#read.messages.map((message) => this.#replaced.get(message) ?? message)
    return {
      messages: placeResults(replaced, this.#results),
      open: this.#open,
      clientCalls: this.#clientCalls,
      error: this.#error,
    }
  }

  async #accept(fate: Fate): Promise<void> {
    switch (fate.kind) {
      case 'result':
        return this.#settle(fate.site, fate.outcome)
      case 'open':
        // a history that holds one request twice has forged one of them
        if (this.#open.some(({ approval }) => approval.id === fate.request.approval.id)) {
          return this.#settle(
            fate.site,
            failed('cancelled', 'the approval is not valid', 'approval-tampered'),
          )
        }
        this.#open.push(fate.request)
        return this.#scope.emit({ type: 'CUSTOM', name: 'approval-requested', value: fate.request })
      case 'client':
        this.#clientCalls.push(fate.site.call.id)
        return
      default:
        return fate satisfies never
    }
  }

  async #handOut(site: CallSite, input: unknown): Promise<void> {
    const { id: toolCallId, function: called } = site.call
    this.#settled.add(site)
    this.#clientCalls.push(toolCallId)
    const value = { toolCallId, toolName: called.name, input }
    await this.#scope.emit({ type: 'CUSTOM', name: 'client-tool-ready', value })
  }

  /** What the client has already is not sent again; what it has wrong is put right. */
  async #settle(site: CallSite, outcome: ToolOutcome): Promise<void> {
    this.#settled.add(site)
    const { call, result } = site
    const message = resultMessage(result?.id ?? this.#scope.settings.generateId(), call.id, outcome)
    if (result !== undefined) {
      if (result.content === message.content) return
      this.#replaced.set(result, message)
    } else {
      this.#results.set(call, message)
    }
    await emitResult(this.#scope, message, outcome)
  }
}
