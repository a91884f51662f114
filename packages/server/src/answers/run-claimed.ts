import type { Message, ToolOutcome } from '@countersign/core'
import { grantSession } from '../gate/grants.js'
import type { ApprovalRef, LedgerAnswer, ToolOutcome as RanOutcome } from '../ledger/ledger.js'
import { audit } from '../scope/audit.js'
import type { RunScope } from '../scope/scope.js'
import type { ReadyCall } from '../tools/call.js'
import { type Execution, executeTool } from '../tools/execute.js'
import { progressEvent } from '../tools/progress.js'
import { toolFailed } from '../tools/tool-errors.js'
import type { AgentTool } from '../tools/toolkit.js'
import { decidedFor } from './decided.js'
import type { Resolution } from './resolution.js'
import { interruptedOutcome, toStored } from './stored-outcome.js'
import type { VerifiedVerdict } from './verdicts.js'

/** An approved call that this run has claimed. */
export interface ClaimedCall {
  readonly verdict: VerifiedVerdict
  readonly call: ReadyCall
  readonly answer: LedgerAnswer
  readonly holder: string
  /** The ledger's, from the claim; for the grant it may lead to. */
  readonly revision: number
  readonly messages: readonly Message[]
}

/** Runs a claimed call to its end, whatever becomes of the client, and records the outcome. */
export async function runClaimed(scope: RunScope, claimed: ClaimedCall): Promise<Resolution> {
  const { call, verdict } = claimed
  await grantSession(scope, claimed)
  if (call.tool.location === 'client') {
    await complete(scope, claimed, { type: 'handed-out', arguments: call.canonical })
    const decided = decidedFor(scope, verdict, claimed.answer)
    return { kind: 'handed-out', site: verdict.site, input: call.args, decided }
  }
  if (call.tool.location === 'provider') {
    await complete(scope, claimed, { type: 'handed-out', arguments: call.canonical })
    return { kind: 'forwarded', site: verdict.site, decided: decidedFor(scope, verdict, claimed.answer) }
  }
  const stopRenewing = keepLease(scope, verdict.ref, claimed.holder)
  let execution: Execution
  try {
    execution = await execute(scope, claimed, call.tool)
  } finally {
    stopRenewing()
  }
  return conclude(scope, claimed, execution)
}

function execute(
  scope: RunScope,
  { verdict, call, messages }: ClaimedCall,
  tool: Extract<AgentTool, { location: 'server' }>,
) {
  const { id: toolCallId, name: toolName } = call
  return executeTool({
    tool,
    input: call.input,
    signal: scope.callerSignal,
    onAbort: 'wait',
    context: {
      toolCallId,
      messages,
      context: scope.context,
      approved: true,
      idempotencyKey: verdict.approvalId,
    },
    report: (data) => scope.emit(progressEvent(toolCallId, toolName, data)),
  })
}

async function conclude(scope: RunScope, claimed: ClaimedCall, execution: Execution): Promise<Resolution> {
  const { site } = claimed.verdict
  const decided = decidedFor(scope, claimed.verdict, claimed.answer)
  const result = (outcome: ToolOutcome): Resolution => ({ kind: 'result', site, outcome, decided })
  switch (execution.kind) {
    case 'finished':
      await complete(scope, claimed, toStored(execution.outcome))
      return result(execution.outcome)
    case 'interrupted':
      await complete(scope, claimed, { type: 'interrupted', message: execution.reason })
      return result(interruptedOutcome(execution.reason))
    case 'threw': {
      const { name, tool } = claimed.call
      if (tool.failureMode !== 'throw') {
        await complete(scope, claimed, toStored(execution.failure))
        return result(execution.failure)
      }
      // an idempotent tool may run again by the same answer: its failure is no outcome
      await complete(scope, claimed, tool.idempotent ? { type: 'interrupted' } : toStored(execution.failure))
      return { kind: 'threw', site, error: toolFailed(name, execution.error) }
    }
    default:
      return execution satisfies never
  }
}

/** Extends the lease while the tool runs. */
function keepLease(scope: RunScope, ref: ApprovalRef, holder: string): () => void {
  const { ledger, leaseMs } = scope.settings.approvals
  const renew = () => {
    ledger.renew(ref, holder, leaseMs).then(
      ({ status }) => {
        if (status === 'lost') clearInterval(timer)
      },
      (error: unknown) => scope.settings.warn('A lease could not be renewed.', error),
    )
  }
  const timer = setInterval(renew, leaseMs / 3)
  return () => clearInterval(timer)
}

const ATTEMPTS = 3

/** Records an outcome. It is told to the person even where it cannot be recorded; the row then lapses to interrupted. */
async function complete(
  scope: RunScope,
  { verdict, holder }: ClaimedCall,
  outcome: RanOutcome,
): Promise<void> {
  const { approvals, warn } = scope.settings
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    try {
      const { status } = await approvals.ledger.complete(verdict.ref, holder, outcome)
      if (status !== 'recorded')
        warn(`The outcome of ${verdict.site.call.function.name} was not recorded: ${status}.`)
      break
    } catch (error) {
      warn(
        `The outcome of ${verdict.site.call.function.name} could not be recorded (attempt ${attempt}).`,
        error,
      )
    }
  }
  const { approvalId, site } = verdict
  const names = { approvalId, toolCallId: site.call.id, toolName: site.call.function.name }
  await audit(scope, { event: 'completed', ...names, outcome: outcome.type })
}
