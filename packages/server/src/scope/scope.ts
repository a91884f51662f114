import type { AGUIEvent, GateContext, Message } from '@countersign/core'
import type { AnswerSource } from '../channel/answer-queue.js'
import type { Owner } from '../ledger/ledger.js'
import type { Limiter } from '../tools/limiter.js'
import type { AgentMethod } from '../tools/tool-errors.js'
import type { Toolkit } from '../tools/toolkit.js'
import type { Outlet } from './channel.js'
import type { RunContext } from './run-context.js'
import type { AgentSettings } from './settings.js'

/** What the parts of one run share. Only `emit` and `report` have an effect. */
export interface RunScope {
  readonly settings: AgentSettings
  readonly threadId: string
  readonly runId: string
  readonly owner: Owner
  readonly context: RunContext
  readonly toolkit: Toolkit
  /** The peer speaks AG-UI 1.0; otherwise what 0.x rejects is left out. */
  readonly isV1Peer: boolean
  /** Stops the model and whatever has not started: the caller's signal, or the reader is gone. */
  readonly stop: AbortSignal
  /** `approvals.wait` after that: what was claimed and has no time of its own is left, too. */
  readonly leave: AbortSignal
  /** The caller's own wish only: the one signal that a claimed tool gets before. */
  readonly callerSignal: AbortSignal | undefined
  readonly limit: Limiter
  /** What the application called: errors say it. */
  readonly method: AgentMethod
  /** The live channel, where there is one: a question then waits for its answer in the open run. */
  readonly answers: AnswerSource | undefined
  readonly emit: Outlet<AGUIEvent>['emit']
  readonly report: Outlet<AGUIEvent>['report']
}

/** What decisions about a call may look at. */
export function gateContext(scope: RunScope, toolCallId: string, messages: readonly Message[]): GateContext {
  return { toolCallId, messages, context: scope.context }
}
