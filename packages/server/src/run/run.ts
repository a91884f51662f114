import {
  type AGUIEvent,
  type Message,
  PROTOCOL_VERSION,
  type RunAgentInput,
  type RunFinishedOutcome,
  type TokenUsage,
  type ToolCall,
  type ToolMessage,
} from '@countersign/core'
import type { AnswerSource } from '../channel/answer-queue.js'
import { type OpenThread, openThread } from '../conversation/open-thread.js'
import { anySignal } from '../encoding/signals.js'
import { type ApprovalRequest, interruptOf } from '../gate/ask.js'
import { type ForwardedHistory, forwardCalls } from '../history/forwarded.js'
import { placeResults, readCalls } from '../history/history.js'
import type { Outlet } from '../scope/channel.js'
import type { RunContext } from '../scope/run-context.js'
import type { RunScope } from '../scope/scope.js'
import type { AgentSettings } from '../scope/settings.js'
import { createLimiter } from '../tools/limiter.js'
import type { AgentMethod } from '../tools/tool-errors.js'
import { withClientTools } from '../tools/toolkit.js'
import { runIsOpen } from './open-runs.js'
import { resumeConversation } from './resume.js'
import { runErrorEvent } from './run-error.js'
import { runStep, type StepResult } from './step.js'

/** The input of a run: `RunAgentInput`, where the client's tools and context may be omitted if there is no client. */
export type RunInput = Omit<RunAgentInput, 'tools' | 'context'> &
  Partial<Pick<RunAgentInput, 'tools' | 'context'>>

export interface RunOptions {
  /** Stops the run: the model, unstarted calls, and running tools, which get this signal. A claimed tool is awaited (`approvals.wait`). */
  readonly signal?: AbortSignal | undefined
  /** The client has gone: like `signal`, but a claimed tool is not signalled while it is awaited. */
  readonly disconnected?: AbortSignal | undefined
  readonly context?: RunContext | undefined
  /**
   * A live channel: the run stays open while the user decides, each approval request waits for its own answer, and the run closes the
   * channel at its end. Default: none, and a run that requested approval ends.
   */
  readonly answers?: AnswerSource | undefined
  /** The run's thread, taken by `agent.openThread`: the run closes it. Default: the run takes it itself, where the agent has threads. */
  readonly thread?: OpenThread | undefined
  /** How often this run may call the model, at most. 0: it only carries out answers. Default: the agent's. */
  readonly maxSteps?: number | undefined
}

/** How a run was started, and who gets its error besides the events. */
export interface RunOrigin {
  readonly method: AgentMethod
  /** The same run is already open: this one only reports that. */
  readonly isTwice?: boolean | undefined
  readonly onFailure?: ((error: unknown) => void) | undefined
}

/** Runs the whole pipeline of one request and reports everything as events. Never throws. */
export async function driveRun(
  settings: AgentSettings,
  input: RunInput,
  options: RunOptions,
  origin: RunOrigin,
  outlet: Outlet<AGUIEvent>,
): Promise<void> {
  const { emit } = outlet
  const { threadId, runId } = input
  const usage: TokenUsage[] = []
  const version = speaksModern(input) && { protocolVersion: PROTOCOL_VERSION }
  await emit({ type: 'RUN_STARTED', threadId, runId, ...version })
  let { thread } = options
  const close = async (last: AGUIEvent): Promise<AGUIEvent> => {
    await thread?.take(last)
    await thread?.close()
    return last
  }
  try {
    if (origin.isTwice) throw runIsOpen({ owner: options.context?.subject ?? null, threadId, runId })
    const { threads } = settings
    thread ??= threads && (await openThread(threads, settings, input, options.context))
    const messages = thread?.messages ?? input.messages
    if (thread?.isPageBehind) await emit({ type: 'MESSAGES_SNAPSHOT', messages: [...messages] })
    const scope = openScope(settings, input, options, origin, recorded(outlet, thread), thread?.lost)
    // The thread is released before the client learns of the end: its next request must find it free.
    await emit(await close(await runPipeline(scope, { ...input, messages }, usage)))
  } catch (error) {
    settings.onError(error)
    origin.onFailure?.(error)
    const last = { ...runErrorEvent(error), ...(usage.length > 0 && { usage }) }
    await close(last).catch((cause: unknown) => cause === error || settings.onError(cause))
    await emit(last)
  } finally {
    options.answers?.close()
  }
}

/** The thread takes each event before the client gets it. */
function recorded(outlet: Outlet<AGUIEvent>, thread: OpenThread | undefined): Outlet<AGUIEvent> {
  if (thread === undefined) return outlet
  return {
    ...outlet,
    emit(event) {
      const stored = thread.take(event)
      return stored === undefined ? outlet.emit(event) : stored.then(() => outlet.emit(event))
    },
  }
}

function speaksModern({ protocolVersion }: RunInput): boolean {
  return protocolVersion !== undefined
}

function openScope(
  settings: AgentSettings,
  input: RunInput,
  { signal, disconnected, context = {}, answers, maxSteps = settings.maxSteps }: RunOptions,
  { method }: RunOrigin,
  { emit, report, gone }: Outlet<AGUIEvent>,
  lost: AbortSignal | undefined,
): RunScope {
  return {
    settings: { ...settings, maxSteps },
    threadId: input.threadId,
    runId: input.runId,
    owner: context.subject ?? null,
    context,
    toolkit: withClientTools(settings.toolkit, input.tools ?? [], settings.warn),
    isV1Peer: speaksModern(input),
    stop: anySignal([gone, signal, disconnected, lost]),
    callerSignal: signal,
    limit: createLimiter(settings.concurrency),
    method,
    answers,
    emit,
    report,
  }
}

/** Continues the conversation; returns its last event. */
async function runPipeline(scope: RunScope, input: RunInput, usage: TokenUsage[]): Promise<AGUIEvent> {
  const history = dropSystemMessages(scope, input.messages)
  const resumed = await resumeConversation(scope, history, input.resume ?? [])
  if (resumed.error !== undefined) throw resumed.error
  const waiting = { asked: resumed.open, clientCalls: resumed.clientCalls }
  // If the run only stopped waiting for answers, it ends as it would have without a live channel: with its open requests.
  if (scope.stop.aborted && !(scope.answers !== undefined && resumed.open.length > 0))
    return stoppedEvent(scope, [])
  if (waits(waiting)) return finishedEvent(scope, 'tool_calls', waiting, [])
  if (resumed.unsettled !== undefined) throw resumed.unsettled
  if (scope.settings.maxSteps === 0) return finishedEvent(scope, 'max_steps', waiting, [])
  if (resumed.hadNoEffect && isAtRest(resumed.messages))
    return finishedEvent(scope, 'nothing-to-do', waiting, [])
  return loop(scope, resumed, usage)
}

/** Whether the model spoke last and has seen everything: then it is not due to be called. */
function isAtRest(messages: readonly Message[]): boolean {
  const last = messages.findLast(({ role }) => role === 'user' || role === 'assistant' || role === 'tool')
  return last?.role === 'assistant'
}

/** Only the server may send system messages. */
function dropSystemMessages({ settings }: RunScope, messages: readonly Message[]): readonly Message[] {
  const kept = messages.filter(settings.keeps)
  if (kept.length < messages.length) {
    settings.warn('System or developer messages of the client were left out; trustSystemMessages keeps them.')
  }
  return kept
}

/** `usage` is filled as it arrives, so that it is known however the run ends. */
async function loop(scope: RunScope, start: ForwardedHistory, usage: TokenUsage[]): Promise<AGUIEvent> {
  const usedIds = new Set(readCalls(start.messages).map(({ call }) => call.id))
  let metadata: Readonly<Record<string, unknown>> = {}
  let history = start
  for (let count = 1; ; count++) {
    const step = await runStep(scope, history, usedIds)
    usage.push(...step.usage)
    metadata = { ...metadata, ...step.metadata }
    if (step.ending.kind === 'failed') throw step.ending.error
    if (step.ending.kind === 'stopped') return stoppedEvent(scope, usage)
    if (waits(step)) return finishedEvent(scope, 'tool_calls', step, usage, metadata)
    const { openCalls, reason } = step.ending
    if (openCalls === 0 && reason !== 'pause') return finishedEvent(scope, reason, step, usage, metadata)
    if (count >= scope.settings.maxSteps) return finishedEvent(scope, 'max_steps', step, usage, metadata)
    history = appendStep(history, step)
  }
}

/** A result belongs to a call of this step, or to one of an earlier step that the provider has run now. */
function appendStep(before: ForwardedHistory, step: StepResult): ForwardedHistory {
  const results = new Map(step.results.map((result) => [result.toolCallId, result]))
  const own = forwardCalls(step.messages, (call) => step.forwarded.get(call.id))
  const messages = [...before.messages, ...own.messages]
  const byCall = new Map<ToolCall, ToolMessage>()
  for (const { call, result } of readCalls(messages)) {
    const given = result === undefined ? results.get(call.id) : undefined
    if (given !== undefined) byCall.set(call, given)
  }
  return {
    messages: placeResults(messages, byCall),
    forwarded: new Map([...before.forwarded, ...own.forwarded].filter(([call]) => !byCall.has(call))),
  }
}

/** What prevents the model from being called again in this run. */
interface Waiting {
  readonly asked: readonly ApprovalRequest[]
  readonly clientCalls: readonly string[]
}

function waits({ asked, clientCalls }: Waiting): boolean {
  return asked.length > 0 || clientCalls.length > 0
}

function finishedEvent(
  scope: RunScope,
  finishReason: string,
  waiting: Waiting,
  usage: readonly TokenUsage[],
  provider: Readonly<Record<string, unknown>> = {},
): AGUIEvent {
  const { threadId, runId } = scope
  const outcome = outcomeOf(scope, waiting)
  return {
    type: 'RUN_FINISHED',
    threadId,
    runId,
    ...(outcome && { outcome }),
    ...(usage.length > 0 && { usage: [...usage] }),
    metadata: { finishReason, ...(Object.keys(provider).length > 0 && { provider }) },
  }
}

/** A 0.x peer can't be told which calls are its own: without an outcome it takes those without a result, with one it takes none. */
function outcomeOf(scope: RunScope, { asked, clientCalls }: Waiting): RunFinishedOutcome | undefined {
  if (asked.length > 0) {
    const interrupts = asked.map((request) =>
      interruptOf(scope, request, scope.toolkit.get(request.toolName)),
    )
    return { type: 'interrupt', interrupts }
  }
  if (clientCalls.length === 0) return { type: 'success' }
  return scope.isV1Peer ? { type: 'success', pendingToolCallIds: [...clientCalls] } : undefined
}

/** A stopped run is not an error, but a 0.x peer has no other term for it. */
function stoppedEvent(scope: RunScope, usage: readonly TokenUsage[]): AGUIEvent {
  if (!scope.isV1Peer) return { type: 'RUN_ERROR', message: 'The run was stopped.', code: 'aborted' }
  const { threadId, runId } = scope
  return {
    type: 'RUN_FINISHED',
    threadId,
    runId,
    outcome: { type: 'cancelled' },
    ...(usage.length > 0 && { usage: [...usage] }),
    metadata: { finishReason: 'aborted' },
  }
}
