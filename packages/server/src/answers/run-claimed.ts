import type { Message, ToolOutcome } from '@countersign/core'
import { grantSession } from '../gate/grants.js'
import type { LedgerAnswer } from '../ledger/ledger.js'
import { askPerson } from '../scope/ask-person.js'
import { audit } from '../scope/audit.js'
import type { RunScope } from '../scope/scope.js'
import type { ReadyCall } from '../tools/call.js'
import { type Execution, executeTool } from '../tools/execute.js'
import { progressEvent } from '../tools/progress.js'
import { logThrown, toolFailed } from '../tools/tool-errors.js'
import type { AgentTool } from '../tools/toolkit.js'
import { auditNames, type Claim, complete, keepLease, record } from './claim.js'
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

function claimOf({ verdict: { ref, site }, holder }: ClaimedCall): Claim {
  return { ref, holder, call: site.call }
}

/** Runs a claimed call to its end, whatever becomes of the client, and records the outcome. */
export async function runClaimed(scope: RunScope, claimed: ClaimedCall): Promise<Resolution> {
  const { call, verdict } = claimed
  const claim = claimOf(claimed)
  await grantSession(scope, claimed)
  if (call.tool.location === 'client') {
    await complete(scope, claim, { type: 'handed-out', arguments: call.canonical })
    const decided = decidedFor(scope, verdict, claimed.answer)
    return { kind: 'handed-out', site: verdict.site, input: call.args, decided }
  }
  if (call.tool.location === 'provider') {
    // the request that tells the provider claims it again, and records what came of it
    await record(scope, claim, { type: 'handed-out', arguments: call.canonical })
    return { kind: 'forwarded', site: verdict.site, decided: decidedFor(scope, verdict, claimed.answer) }
  }
  const stopRenewing = keepLease(scope, claim)
  let execution: Execution
  try {
    await audit(scope, { event: 'started', ...auditNames(claim) })
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
      threadId: scope.threadId,
      runId: scope.runId,
      messages,
      context: scope.context,
      approved: true,
      idempotencyKey: verdict.approvalId,
    },
    stream: (data) => scope.emit(progressEvent(toolCallId, toolName, data)),
    report: (data) => scope.report(progressEvent(toolCallId, toolName, data)),
    ask: (question, over) => askPerson(scope, call, question, over),
  })
}

async function conclude(scope: RunScope, claimed: ClaimedCall, execution: Execution): Promise<Resolution> {
  const { site } = claimed.verdict
  const claim = claimOf(claimed)
  const decided = decidedFor(scope, claimed.verdict, claimed.answer)
  const result = (outcome: ToolOutcome): Resolution => ({ kind: 'result', site, outcome, decided })
  switch (execution.kind) {
    case 'finished':
      await complete(scope, claim, toStored(execution.outcome))
      return result(execution.outcome)
    case 'interrupted':
      await complete(scope, claim, { type: 'interrupted', message: execution.reason })
      return result(interruptedOutcome(execution.reason))
    case 'threw': {
      const { name, tool } = claimed.call
      if (tool.failureMode !== 'throw') {
        logThrown(scope.settings.warn, execution.error, name, claim.call.id)
        await complete(scope, claim, toStored(execution.failure))
        return result(execution.failure)
      }
      // an idempotent tool may run again by the same answer: its failure is no outcome
      await complete(scope, claim, tool.idempotent ? { type: 'interrupted' } : toStored(execution.failure))
      return { kind: 'threw', site, error: toolFailed(name, execution.error) }
    }
    default:
      return execution satisfies never
  }
}
