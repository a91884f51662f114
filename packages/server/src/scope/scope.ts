import type { AGUIEvent, GateContext, Message, TokenUsage } from '@countersign/core'
import type { AnswerSource } from '../channel/answer-queue.js'
import type { Owner } from '../ledger/ledger.js'
import type { RunObserver } from '../observe/run-observer.js'
import type { ReadyCall } from '../tools/call.js'
import type { Limiter } from '../tools/limiter.js'
import type { AgentMethod } from '../tools/tool-errors.js'
import type { Toolkit } from '../tools/toolkit.js'
import type { Outlet } from './channel.js'
import type { RunContext } from './run-context.js'
import type { AgentSettings } from './settings.js'
import type { WrittenParts } from './written-parts.js'

/** What the parts of one run share. Only `emit`, `report` and `written` have effects. */
export interface RunScope {
  readonly settings: AgentSettings
  readonly threadId: string
  readonly runId: string
  readonly owner: Owner
  readonly context: RunContext
  readonly toolkit: Toolkit
  /** The tools that an answer in another run finds. `toolkit` is the same, unless `prepareStep` has chosen other tools for a step. */
  readonly runToolkit: Toolkit
  /** The peer uses AG-UI 1.0; otherwise, whatever 0.x rejects is omitted. */
  readonly isV1Peer: boolean
  /** Stops the model and unstarted calls: the caller's signal, or the reader has gone. */
  readonly stop: AbortSignal
  /** Once aborted, no hook of the application is waited for: `stop`, but a claimed call has `approvals.wait` more to start and end. */
  readonly leave: AbortSignal
  /** Only the caller's own signal: the one signal that a claimed tool gets at once. */
  readonly callerSignal: AbortSignal | undefined
  readonly limit: Limiter
  /** Approved calls with a preview run one after the other: what one does may change what another was approved for. */
  readonly turn: Limiter
  /** The method that the application called, for errors. */
  readonly method: AgentMethod
  /** The live channel, if there is one: an approval request then waits for its answer in the open run. */
  readonly answers: AnswerSource | undefined
  readonly emit: Outlet<AGUIEvent>['emit']
  readonly report: Outlet<AGUIEvent>['report']
  /** What the model has used so far. Filled as it arrives, so that it is known however the run ends. */
  readonly usage: TokenUsage[]
  readonly observer?: RunObserver | undefined
  readonly written: WrittenParts
  /** Of the stored conversation, if there is one (`OpenThread`). */
  readonly keepRoom?: (() => Promise<void>) | undefined
}

/** Whether an answer, which may arrive in another run, finds this very tool. */
export function isOfRun({ runToolkit }: RunScope, { tool, name }: Pick<ReadyCall, 'tool' | 'name'>): boolean {
  return tool.location === 'provider' || runToolkit.get(name) === tool
}

export function gateContext(scope: RunScope, toolCallId: string, messages: readonly Message[]): GateContext {
  return { toolCallId, messages, context: scope.context }
}
