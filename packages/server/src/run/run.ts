import {
  type AGUIEvent,
  type Message,
  PROTOCOL_VERSION,
  type RunAgentInput,
  type RunFinishedOutcome,
  type TokenUsage,
} from '@countersign/core'
import { type ApprovalRequest, interruptOf } from '../gate/ask.js'
import { placeResults, readCalls } from '../history/history.js'
import type { Emit } from '../scope/channel.js'
import type { RunScope } from '../scope/scope.js'
import type { AgentSettings, RunContext } from '../scope/settings.js'
import { createLimiter } from '../tools/limiter.js'
import { withClientTools } from '../tools/toolkit.js'
import { resumeConversation } from './resume.js'
import { runErrorEvent } from './run-error.js'
import { runStep, type StepResult } from './step.js'

export interface RunOptions {
  /** Stops the run: the model, whatever has not started, and every running tool gets it. A claimed tool is waited for. */
  readonly signal?: AbortSignal | undefined
  /** The client has gone: as `signal`, but a claimed tool does not hear of it and runs to its end. */
  readonly disconnected?: AbortSignal | undefined
  readonly context?: RunContext | undefined
}

/** Runs the whole pipeline of one request (design: section 6) and says everything by events. Never throws. */
export async function driveRun(
  settings: AgentSettings,
  input: RunAgentInput,
  options: RunOptions,
  emit: Emit<AGUIEvent>,
  gone: AbortSignal,
): Promise<void> {
  const scope = openScope(settings, input, options, emit, gone)
  const { threadId, runId, modern } = scope
  await emit({ type: 'RUN_STARTED', threadId, runId, ...(modern && { protocolVersion: PROTOCOL_VERSION }) })
  try {
    await emit(await converse(scope, input))
  } catch (error) {
    settings.onError(error)
    await emit(runErrorEvent(error))
  }
}

function openScope(
  settings: AgentSettings,
  input: RunAgentInput,
  { signal, disconnected, context = {} }: RunOptions,
  emit: Emit<AGUIEvent>,
  gone: AbortSignal,
): RunScope {
  const stops = [gone, signal, disconnected].filter((one) => one !== undefined)
  return {
    settings,
    threadId: input.threadId,
    runId: input.runId,
    owner: context.subject ?? null,
    context,
    toolkit: withClientTools(settings.toolkit, input.tools ?? [], settings.warn),
    modern: input.protocolVersion !== undefined,
    stop: AbortSignal.any(stops),
    callerSignal: signal,
    limit: createLimiter(settings.concurrency),
    emit,
  }
}

/** The conversation's next part; answers its last event. */
async function converse(scope: RunScope, input: RunAgentInput): Promise<AGUIEvent> {
  const history = trusted(scope, input.messages)
  const resumed = await resumeConversation(scope, history, input.resume ?? [])
  if (resumed.error !== undefined) throw resumed.error
  const waiting = { asked: resumed.open, clientCalls: resumed.clientCalls }
  if (scope.stop.aborted) return stoppedEvent(scope, [])
  if (waits(waiting)) return finishedEvent(scope, 'tool_calls', waiting, [])
  return loop(scope, resumed.messages)
}

/** Only the server speaks as the system. */
function trusted({ settings }: RunScope, messages: readonly Message[]): readonly Message[] {
  const kept = messages.filter(settings.keeps)
  if (kept.length < messages.length) {
    settings.warn('System or developer messages of the client were left out; trustSystemMessages keeps them.')
  }
  return kept
}

async function loop(scope: RunScope, start: readonly Message[]): Promise<AGUIEvent> {
  const usage: TokenUsage[] = []
  const usedIds = new Set(readCalls(start).map(({ call }) => call.id))
  let metadata: Readonly<Record<string, unknown>> = {}
  let messages = start
  for (let count = 1; ; count++) {
    const step = await runStep(scope, messages, usedIds)
    usage.push(...step.usage)
    metadata = { ...metadata, ...step.metadata }
    if (step.ending.kind === 'failed') throw step.ending.error
    if (step.ending.kind === 'stopped') return stoppedEvent(scope, usage)
    if (waits(step)) return finishedEvent(scope, 'tool_calls', step, usage, metadata)
    if (step.ending.localCalls === 0) return finishedEvent(scope, step.ending.reason, step, usage, metadata)
    if (count >= scope.settings.maxSteps) return finishedEvent(scope, 'max_steps', step, usage, metadata)
    messages = appendStep(messages, step)
  }
}

function appendStep(messages: readonly Message[], step: StepResult): readonly Message[] {
  const results = new Map(step.results.map((result) => [result.toolCallId, result]))
  const calls = step.messages.flatMap((message) =>
    message.role === 'assistant' ? (message.toolCalls ?? []) : [],
  )
  const byCall = new Map(
    calls.flatMap((call) => {
      const result = results.get(call.id)
      return result === undefined ? [] : [[call, result] as const]
    }),
  )
  return [...messages, ...placeResults(step.messages, byCall)]
}

/** What keeps the model from being called again in this run. */
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
  return {
    type: 'RUN_FINISHED',
    threadId,
    runId,
    outcome: outcomeOf(scope, waiting),
    ...(usage.length > 0 && { usage: [...usage] }),
    metadata: { finishReason, ...(Object.keys(provider).length > 0 && { provider }) },
  }
}

function outcomeOf(scope: RunScope, { asked, clientCalls }: Waiting): RunFinishedOutcome {
  if (asked.length > 0) {
    const interrupts = asked.map((request) =>
      interruptOf(scope, request, scope.toolkit.get(request.toolName)),
    )
    return { type: 'interrupt', interrupts }
  }
  return clientCalls.length > 0 && scope.modern
    ? { type: 'success', pendingToolCallIds: [...clientCalls] }
    : { type: 'success' }
}

/** A run that was stopped is not an error; a 0.x peer has no other word for it. */
function stoppedEvent(scope: RunScope, usage: readonly TokenUsage[]): AGUIEvent {
  if (!scope.modern) return { type: 'RUN_ERROR', message: 'The run was stopped.', code: 'aborted' }
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
