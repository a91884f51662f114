import { type AnyServerTool, CountersignError, type Message } from '@countersign/core'
import { unlessLeft } from '../encoding/hooks.js'
import { anySignal, onAbort } from '../encoding/signals.js'
import { failed, type ToolOutcome } from '../outcome.js'
import { createChannel, jsonSize, type Outlet } from '../scope/channel.js'
import { readCall } from '../tools/call.js'
import { executeTool, NOT_STARTED } from '../tools/execute.js'
import { outcomeOf } from '../tools/execution.js'
import { createLimiter } from '../tools/limiter.js'
import { reportedData } from '../tools/progress.js'
import { logThrown } from '../tools/tool-errors.js'
import { createToolkit, type Toolkit } from '../tools/toolkit.js'
import type { PlanEvent } from './events.js'
import type { ApprovalPlan, ApprovedCall, PlannedCall, RejectedCall } from './plan.js'
import type { LivePlan } from './plan-from-queue.js'

export interface RunPlanOptions {
  readonly tools: readonly AnyServerTool[]
  /** How many tools run at once. Default `'unbounded'`. */
  readonly concurrency?: number | 'unbounded' | undefined
  /** Stops running tools and cancels pending calls. Every call still gets its output. */
  readonly signal?: AbortSignal | undefined
  /** Services of the application, for its tools. */
  readonly context?: Readonly<Record<string, unknown>> | undefined
  /** The conversation so far, for its tools. */
  readonly messages?: readonly Message[] | undefined
  /** Receives what a tool threw; its output says only that it failed, unless it is a `ToolError`. Default `console.warn`. */
  readonly warn?: ((message: string, error?: unknown) => void) | undefined
}

/** A plan for {@link runPlan}: decided already, or decided while it is carried out. */
export type RunnablePlan = Pick<ApprovalPlan<PlannedCall>, 'approved' | 'rejected'> | LivePlan<PlannedCall>

/**
 * Carries out a plan: approved calls run at once and in parallel, rejected ones get their failure as output, and a live plan's
 * requests and decisions are passed on as they arrive. Every call gets exactly one output, whatever happens; nothing throws. Events
 * arrive as they happen. A reader that stops also stops running tools and pending calls.
 *
 * This is for applications that drive a model themselves, with `runTools: false`. An agent that runs its own tools also signs
 * its requests and verifies the answers; here the application is responsible for the origin of its verdicts.
 *
 * @throws CountersignError `invalid-tool`, `invalid-option` like `createAgent`.
 */
export function runPlan(plan: RunnablePlan, options: RunPlanOptions): AsyncIterableIterator<PlanEvent> {
  const toolkit = createToolkit(options.tools)
  const limit = createLimiter(mostAtOnce(options.concurrency ?? 'unbounded'))
  const write = async (outlet: Outlet<PlanEvent>) => {
    const stop = anySignal([outlet.gone, options.signal])
    const end = ({ toolCallId, toolName }: PlannedCall, outcome: ToolOutcome) =>
      outlet.emit({ type: 'output', toolCallId, toolName, outcome })
    const carryOut = async (one: ApprovedCall<PlannedCall> | RejectedCall<PlannedCall>) =>
      'failure' in one
        ? end(one.call, one.failure)
        : limit(async () => end(one.call, await execute({ toolkit, stop, outlet, options }, one)))
    const work = plan.approved.map(carryOut)
    if ('rejected' in plan) work.push(...plan.rejected.map(carryOut))
    else work.push(passOn(plan, outlet), follow(plan, stop, carryOut))
    await Promise.all(work)
  }
  return createChannel(write, { sizeOf })
}

/** Progress reports are JSON. Requests and outputs are the application's own values, one of each per call. */
function sizeOf(event: PlanEvent): number {
  return jsonSize(event.type === 'progress' ? JSON.stringify(event.data) : '')
}

function mostAtOnce(concurrency: number | 'unbounded'): number {
  if (concurrency === 'unbounded') return Number.POSITIVE_INFINITY
  if (concurrency > 0) return concurrency
  const message = `concurrency must be a positive number or 'unbounded', not ${concurrency}.`
  throw new CountersignError('invalid-option', message, { option: 'concurrency', value: concurrency })
}

async function passOn({ approvalRequests }: LivePlan, outlet: Outlet<PlanEvent>): Promise<void> {
  for await (const request of approvalRequests) await outlet.emit(request)
}

/** Carries out each decision as it is made, and cancels the calls that have none at the end. */
async function follow(
  { pending, decisions }: LivePlan,
  stop: AbortSignal,
  carryOut: (one: ApprovedCall<PlannedCall> | RejectedCall<PlannedCall>) => Promise<void>,
): Promise<void> {
  const left = new Map(pending.map((call) => [call.approvalId, call]))
  const leave = () => void decisions.return?.()
  const unwatch = onAbort(stop, leave)
  if (stop.aborted) leave()
  const running: Promise<void>[] = []
  for await (const decision of decisions) {
    left.delete(decision.call.approvalId)
    running.push(carryOut(decision))
  }
  unwatch()
  for (const call of left.values()) running.push(carryOut({ call, failure: failed('cancelled') }))
  await Promise.all(running)
}

interface PlanScope {
  readonly toolkit: Toolkit
  readonly stop: AbortSignal
  readonly outlet: Outlet<PlanEvent>
  readonly options: RunPlanOptions
}

async function execute(
  { toolkit, stop, outlet, options }: PlanScope,
  { call, verdict }: ApprovedCall<PlannedCall>,
): Promise<ToolOutcome> {
  const { toolCallId, toolName } = call
  const proposed = { id: toolCallId, name: toolName, arguments: call.arguments }
  const read = await readCall({ toolkit, leave: stop }, proposed).catch(unlessLeft)
  if (read === undefined) return failed('cancelled', NOT_STARTED, 'aborted')
  if (!read.ok) return read.failure
  const { tool, input } = read.call
  if (tool.location !== 'server') return failed('execution_error', `${toolName} runs in the client only.`)
  const { messages = [], context = {} } = options
  const reported = (said: unknown): PlanEvent => {
    const data = reportedData(toolName, said)
    return { type: 'progress', toolCallId, toolName, data }
  }
  const idempotencyKey = call.approvalId ?? toolCallId
  const execution = await executeTool({
    tool,
    input,
    leave: stop,
    maxSize: Number.POSITIVE_INFINITY,
    context: { toolCallId, messages, context, approved: verdict !== undefined, idempotencyKey },
    stream: async (data) => outlet.emit(reported(data)),
    report: (data) => outlet.report(reported(data)),
    write: async () => {},
    ask: async () => ({ action: 'decline', reason: 'The user was not asked: there is no run.' }),
  })
  if (execution.kind === 'threw')
    logThrown(options.warn ?? console.warn, execution.error, toolName, toolCallId)
  return outcomeOf(execution)
}
