import {
  type AGUIEvent,
  CountersignError,
  type EventOf,
  isCountersignError,
  type Message,
  PROTOCOL_VERSION,
  type RunAgentInput,
  type RunFinishedOutcome,
  type TokenUsage,
  type ToolCall,
  type ToolMessage,
} from '@countersign/core'
import { closeRequests } from '../answers/close-thread.js'
import { outcomeOfOpenCall } from '../answers/open-call.js'
import { readHistory, withEdits } from '../answers/records.js'
import type { AnswerSource } from '../channel/answer-queue.js'
import type { CloseCalls } from '../conversation/branch.js'
import { stoppedByUser } from '../conversation/ending.js'
import { lacksHistory } from '../conversation/known-conversation.js'
import { type OpenThread, openThread } from '../conversation/open-thread.js'
import { overruled } from '../conversation/request-history.js'
import { isRemoval } from '../conversation/thread-writer.js'
import { isLeft } from '../encoding/hooks.js'
import { type NewId, newIds } from '../encoding/ids.js'
import { anySignal } from '../encoding/signals.js'
import { warnOnce } from '../encoding/warn-once.js'
import { type ApprovalRequest, interruptOf } from '../gate/ask.js'
import { type ForwardedHistory, forwardCalls } from '../history/forwarded.js'
import { placeResults, readCalls, resultMessage } from '../history/history.js'
import { observerOf } from '../scope/audit.js'
import type { Emit, Outlet } from '../scope/channel.js'
import type { OutputOptions, StructuredOutput } from '../scope/output.js'
import type { RunContext } from '../scope/run-context.js'
import type { RunScope } from '../scope/scope.js'
import type { AgentSettings } from '../scope/settings.js'
import { WrittenParts } from '../scope/written-parts.js'
import { createLimiter } from '../tools/limiter.js'
import type { AgentMethod } from '../tools/tool-errors.js'
import { withClientTools } from '../tools/toolkit.js'
import { askedBy } from './asked-by.js'
import { emitResult } from './emit.js'
import { runFinished } from './observe.js'
import { resumeConversation } from './resume.js'
import { runErrorEvent } from './run-error.js'
import { runStep, type StepResult } from './step.js'
import { runDeadline } from './timeouts.js'

/** The input of a run: `RunAgentInput`, where the client's tools and context may be omitted if there is no client. */
export type RunInput = Omit<RunAgentInput, 'tools' | 'context'> &
  Partial<Pick<RunAgentInput, 'tools' | 'context'>>

/** `output`: of this run only. Default: the agent's. */
export interface RunOptions<Output = unknown> extends OutputOptions<Output> {
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
  /**
   * Resolves when a transport has delivered the last event: `agent.drain` waits for it. Default: once the events were read to their end and
   * one more was asked for, or their reader has gone, at most `limits.stallTime` after the end of the run.
   */
  readonly delivered?: Promise<void> | undefined
  /** Counts a result that the run keeps until its end, before it is sent. An error of it ends the run. */
  readonly hold?: ((result: EventOf<'TOOL_CALL_RESULT'>) => void) | undefined
  /** How often this run may call the model, at most. 0: it only carries out answers. Default: the agent's. */
  readonly maxSteps?: number | undefined
}

/** How a run was started, and who gets its error besides the events. */
export interface RunOrigin {
  readonly method: AgentMethod
  /** Why it may not start: it only reports that. */
  readonly refusal?: CountersignError | undefined
  /** Aborted when the server shuts down. */
  readonly draining?: AbortSignal | undefined
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
  const version = speaksModern(input) && { protocolVersion: PROTOCOL_VERSION }
  // Without threads, no request joins a run.
  const asked = settings.threads && (await askedBy(input))
  const metadata = asked !== undefined && { metadata: { countersign: { asked } } }
  await emit({ type: 'RUN_STARTED', threadId, runId, ...version, ...metadata })
  const owner = options.context?.subject ?? null
  const observer = origin.refusal ? undefined : await observerOf({ settings, owner, threadId, runId })
  const started = observer?.report({ type: 'run-started' })
  const deadline = runDeadline(settings.timeouts.run)
  let { thread } = options
  let usage = thread?.usage ?? []
  let stop: AbortSignal | undefined
  const close = async (last: AGUIEvent): Promise<AGUIEvent> => {
    await thread?.take(last)
    await thread?.close()
    return last
  }
  const end = async (last: AGUIEvent): Promise<void> => {
    if (observer && started) observer.report(runFinished(last, observer.since(started)))
    await emit(last)
  }
  const proceed = async (): Promise<AGUIEvent> => {
    if (origin.refusal) throw origin.refusal
    const { report, gone } = outlet
    const early = anySignal([gone, options.signal, options.disconnected, deadline.signal, origin.draining])
    stop = early
    thread ??= await openRunThread(settings, input, options.context, early)
    usage = thread?.usage ?? usage
    const messages = thread?.messages ?? input.messages
    if (thread?.isPageBehind) await emit({ type: 'MESSAGES_SNAPSHOT', messages: [...messages] })
    // Not every route passes a snapshot on.
    for (const result of thread ? overruled(messages, input.messages) : []) await emitResult(outlet, result)
    stop = anySignal([early, thread?.lost])
    const ids = new Set(messages.map(({ id }) => id))
    const generateId = thread?.newId ?? newIds(settings.generateId, (id) => ids.has(id))
    const scope = openScope({ ...settings, generateId }, { ...input, messages }, options, origin, {
      emit: recorded(counted(emit, options.hold), thread),
      ...{ report, usage, observer, stop, keepRoom: thread?.keepRoom },
    })
    return runPipeline(scope, { ...input, messages }, thread)
  }
  // Each hook is left in a way of its own; one whose caller has none ends the run as the stop does.
  const stopped = (error: unknown): AGUIEvent => {
    if (!isLeft(error) || stop === undefined) throw error
    const isV1Peer = speaksModern(input)
    return stoppedEvent({ isV1Peer, threadId, runId, usage, stop, callerSignal: options.signal })
  }
  try {
    // The thread is released before the client learns of the end: its next request must find it free.
    await end(await close(await proceed().catch(stopped)))
  } catch (error) {
    settings.onError(error)
    origin.onFailure?.(error)
    const last = { ...runErrorEvent(error), ...usageField(usage) }
    await close(last).catch((cause: unknown) => cause === error || settings.onError(cause))
    // Whoever removed the thread could not close a request that this run made afterwards.
    if (thread && isRemoval(thread.lost.reason)) {
      const removed = { settings, owner, threadId, observer, leave: thread.lost }
      await closeRequests(removed, runId).catch(settings.onError)
    }
    await end(last)
  } finally {
    deadline.end()
    options.answers?.close()
  }
}

/** For what is done outside of a run: nobody reads events of that. */
export function scopeOutside(
  settings: AgentSettings,
  input: Pick<RunInput, 'threadId' | 'tools'> & Partial<Pick<RunInput, 'runId'>>,
  context: RunContext | undefined,
  stop: AbortSignal,
): RunScope {
  const own = { emit: async () => {}, report: () => {}, usage: [], observer: undefined, stop }
  return openScope(settings, { runId: '', ...input, messages: [] }, { context }, { method: 'stream' }, own)
}

/** Closes calls outside of a run. */
export function closing(scope: RunScope): CloseCalls {
  return (messages, ids, newId) => closeBranch(scope, messages, ids, newId)
}

const NO_HISTORY =
  'A page sends only what is new, because it takes the server to keep the conversation, but this agent has no `threads`: the model does not see what was said before. Give createAgent `threads`, or take serverHistory out of the page.'

/** Takes the thread of a run, if the agent has threads. `abandoned`: only if this run still has it. */
export async function openRunThread(
  settings: AgentSettings,
  input: RunInput,
  context: RunContext | undefined,
  stop: AbortSignal,
  abandoned?: string,
): Promise<OpenThread | undefined> {
  const { threads } = settings
  if (threads === undefined) {
    if (lacksHistory(input)) warnOnce(settings.warn, NO_HISTORY)
    return undefined
  }
  const scope = scopeOutside(settings, input, context, stop)
  const calls: Parameters<typeof openThread>[4] = {
    closeCalls: closing(scope),
    withEdits: (messages, from) => withEdits(scope, messages, from),
    stop,
  }
  return openThread(threads, settings, input, context ?? {}, calls, abandoned)
}

/** The thread takes each event before the client gets it. */
function recorded(emit: Emit<AGUIEvent>, thread: OpenThread | undefined): Emit<AGUIEvent> {
  if (thread === undefined) return emit
  return (event) => {
    const stored = thread.take(event)
    return stored === undefined ? emit(event) : stored.then(() => emit(event))
  }
}

function counted(emit: Emit<AGUIEvent>, hold: RunOptions['hold']): Emit<AGUIEvent> {
  return (event) => {
    if (event.type === 'TOOL_CALL_RESULT') hold?.(event)
    return emit(event)
  }
}

function speaksModern({ protocolVersion }: RunInput): boolean {
  return protocolVersion !== undefined
}

function openScope(
  settings: AgentSettings & { readonly generateId: NewId },
  input: RunInput,
  { signal, context = {}, answers, maxSteps = settings.maxSteps }: RunOptions,
  { method }: RunOrigin,
  own: Pick<RunScope, 'emit' | 'report' | 'stop' | 'usage' | 'observer' | 'keepRoom'>,
): RunScope {
  const toolkit = withClientTools(settings.toolkit, input.tools ?? [], settings.warn)
  return {
    settings: { ...settings, maxSteps },
    threadId: input.threadId,
    runId: input.runId,
    owner: context.subject ?? null,
    context,
    toolkit,
    runToolkit: toolkit,
    isV1Peer: speaksModern(input),
    callerSignal: signal,
    limit: createLimiter(settings.concurrency),
    turn: createLimiter(1),
    method,
    answers,
    ...own,
    leave: own.stop,
    written: new WrittenParts({
      emit: own.emit,
      newId: settings.generateId,
      history: input.messages,
      maxSize: settings.limits.resultSize,
    }),
  }
}

/** Continues the conversation; returns its last event. */
async function runPipeline(
  scope: RunScope,
  input: RunInput,
  thread: Pick<OpenThread, 'isAnswered' | 'isCut'> | undefined,
): Promise<AGUIEvent> {
  const history = dropSystemMessages(scope, input.messages)
  const resumed = await resumeConversation(scope, history, input.resume ?? [])
  if (resumed.error !== undefined) throw resumed.error
  const waiting = { asked: resumed.open, clientCalls: resumed.clientCalls }
  // If the run only stopped waiting for answers, it ends as it would have without a live channel: with its open requests.
  if (scope.stop.aborted && !(scope.answers !== undefined && resumed.open.length > 0))
    return stoppedEvent(scope)
  if (waits(waiting)) return finishedEvent(scope, 'tool_calls', waiting)
  if (resumed.unsettled !== undefined) throw resumed.unsettled
  if (scope.settings.maxSteps === 0) return finishedEvent(scope, 'max_steps', waiting)
  const bringsNothing = resumed.hadNoEffect || thread?.isAnswered
  if (bringsNothing && !thread?.isCut && isAtRest(resumed.messages))
    return finishedEvent(scope, 'nothing-to-do', waiting)
  return loop(scope, resumed)
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

async function loop(scope: RunScope, start: ForwardedHistory): Promise<AGUIEvent> {
  const usedIds = new Set(readCalls(start.messages).map(({ call }) => call.id))
  let metadata: Readonly<Record<string, unknown>> = {}
  let history = start
  for (let count = 1; ; count++) {
    if (scope.observer) scope.observer.step = count
    const step = await runStep(scope, history, usedIds, { number: count, usage: scope.usage })
    metadata = { ...metadata, ...step.metadata }
    if (step.ending.kind === 'failed') throw step.ending.error
    if (step.ending.kind === 'stopped') return stoppedEvent(scope)
    if (waits(step)) return finishedEvent(scope, 'tool_calls', step, metadata)
    const { openCalls, reason } = step.ending
    if (openCalls === 0 && reason !== 'pause') return finishedEvent(scope, reason, step, metadata)
    if (count >= scope.settings.maxSteps) return finishedEvent(scope, 'max_steps', step, metadata)
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

/** How a run ends. `asked` and `clientCalls` prevent the model from being called again in it. */
interface Ending {
  readonly asked: readonly ApprovalRequest[]
  readonly clientCalls: readonly string[]
  readonly output?: StructuredOutput | undefined
}

function waits({ asked, clientCalls }: Ending): boolean {
  return asked.length > 0 || clientCalls.length > 0
}

function finishedEvent(
  scope: RunScope,
  finishReason: string,
  ending: Ending,
  provider: Readonly<Record<string, unknown>> = {},
): AGUIEvent {
  const { threadId, runId, usage } = scope
  const outcome = outcomeOf(scope, ending)
  const result = ending.output?.value ?? undefined
  return {
    type: 'RUN_FINISHED',
    threadId,
    runId,
    ...(outcome && { outcome }),
    ...(result !== undefined && { result }),
    ...usageField(usage),
    metadata: { finishReason, ...(Object.keys(provider).length > 0 && { provider }) },
  }
}

/** A 0.x peer can't be told which calls are its own: without an outcome it takes those without a result, with one it takes none. */
function outcomeOf(scope: RunScope, { asked, clientCalls }: Ending): RunFinishedOutcome | undefined {
  if (asked.length > 0) {
    const interrupts = asked.map((request) =>
      interruptOf(scope, request, scope.toolkit.get(request.toolName)),
    )
    return { type: 'interrupt', interrupts }
  }
  if (clientCalls.length === 0) return { type: 'success' }
  return scope.isV1Peer ? { type: 'success', pendingToolCallIds: [...clientCalls] } : undefined
}

type StoppedRun = Pick<RunScope, 'isV1Peer' | 'threadId' | 'runId' | 'usage' | 'stop' | 'callerSignal'>

/**
 * A run that its user stopped is not an error, but a 0.x peer has no other term for it. `disconnected`: nobody reads it any more, and it may not
 * go on so.
 *
 * @throws the reason, if the server has stopped the run.
 */
function stoppedEvent({ isV1Peer, threadId, runId, usage, stop, callerSignal }: StoppedRun): AGUIEvent {
  if (isCountersignError(stop.reason)) throw stop.reason
  const isByUser = stop.reason === stoppedByUser || stop.reason === callerSignal?.reason
  const code = isByUser ? 'aborted' : 'disconnected'
  if (!isV1Peer) return { type: 'RUN_ERROR', message: 'The run was stopped.', code, ...usageField(usage) }
  return {
    type: 'RUN_FINISHED',
    threadId,
    runId,
    outcome: { type: 'cancelled' },
    ...usageField(usage),
    metadata: { finishReason: code },
  }
}

function usageField(usage: readonly TokenUsage[]) {
  return usage.length > 0 && { usage: [...usage] }
}

/** Closes open calls as if the user had moved on: their approval requests are settled in the ledger, so nobody can answer them any more. */
async function closeBranch(
  scope: RunScope,
  messages: readonly Message[],
  ids: ReadonlySet<string>,
  newId: () => string,
): Promise<readonly ToolMessage[]> {
  const nextMessage: Message = { id: '', role: 'user', content: '' }
  const read = await readHistory(scope, [...messages, nextMessage])
  const results: ToolMessage[] = []
  for (const site of read.sites) {
    if (site.result !== undefined || !ids.has(site.message.id)) continue
    const closed = await outcomeOfOpenCall(scope, site, read.issued, undefined, read.messages)
    if (closed.kind === 'refused') throw new CountersignError(closed.code, closed.message, { status: 503 })
    if (closed.kind !== 'result') continue
    const { outcome, decided } = closed
    results.push(resultMessage(newId(), site.call.id, outcome, { decided }))
  }
  return results
}
