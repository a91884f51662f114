import { abortLater } from '../encoding/signals.js'
import { grantSession } from '../gate/grants.js'
import type { ToolOutcome } from '../outcome.js'
import { askPerson } from '../scope/ask-person.js'
import { audit } from '../scope/audit.js'
import type { RunScope } from '../scope/scope.js'
import { type Execution, executeTool } from '../tools/execute.js'
import { progressEvent } from '../tools/progress.js'
import { logThrown, toolFailed } from '../tools/tool-errors.js'
import type { AgentTool } from '../tools/toolkit.js'
import { auditNames, type Claim, complete, keepLease, record } from './claim.js'
import type { ClaimedCall } from './claimed-call.js'
import { decidedFor } from './decided.js'
import type { Refusal } from './refusals.js'
import type { Resolution } from './resolution.js'
import { reasonNotToStart } from './start.js'
import { interruptedOutcome, toStored, type Unstarted, unstartedOutcome } from './stored-outcome.js'

function claimOf({ verdict: { ref, site }, holder }: ClaimedCall): Claim {
  return { ref, holder, call: site.call }
}

/**
 * Runs a claimed call and records the outcome. Once the run has stopped, or its reader has gone, the tool may finish within its own
 * `timeout`, or `approvals.wait` if it has none; then it is abandoned, so that it does not block its thread. The lease is kept from here
 * on. A call that must not start after all ends with the reason.
 */
export async function runClaimed(scope: RunScope, claimed: ClaimedCall): Promise<Resolution> {
  const { call, told } = claimed
  const { tool } = call
  const claim = claimOf(claimed)
  const stopRenewing = keepLease(scope, claim)
  let execution: Execution
  try {
    if (told !== undefined) await audit(scope, { event: 'claimed', ...told })
    if (tool.location === 'server') await audit(scope, { event: 'started', ...auditNames(claim) })
    const reason = await reasonNotToStart(scope, claim, claimed)
    if (reason !== undefined) return unstarted(scope, claimed, reason)
    if (tool.location !== 'server') return handOut(scope, claimed)
    // Only once the call may start, and before the tool can change the input, from which the grant's key is read.
    const granting = grantSession(scope, claimed)
    execution = await execute(scope, claimed, tool)
    await granting
  } finally {
    stopRenewing()
  }
  return conclude(scope, claimed, execution)
}

/** Ends a claim whose call must not start. */
async function unstarted(scope: RunScope, claimed: ClaimedCall, reason: Unstarted): Promise<Resolution> {
  const { verdict, answer } = claimed
  await complete(scope, claimOf(claimed), reason)
  const outcome = unstartedOutcome(reason)
  return { kind: 'result', site: verdict.site, outcome, decided: decidedFor(scope, verdict, answer) }
}

/** Leaves a call to its client or provider, which starts it: only if the ledger recorded that while the claim was held. */
async function handOut(scope: RunScope, claimed: ClaimedCall): Promise<Resolution> {
  const { call, verdict, answer } = claimed
  const { site } = verdict
  const decided = decidedFor(scope, verdict, answer)
  const claim = claimOf(claimed)
  const recorded = await record(scope, claim, { type: 'handed-out', arguments: call.canonical })
  // If the client learns that the call was interrupted, it must never get it later. Repeating the answer returns what the ledger has then.
  if (recorded === 'unknown') return { kind: 'refused', site, refusal: unknownHandOut(claim) }
  const end = { event: 'completed', ...auditNames(claim) } as const
  if (recorded !== 'held') {
    await audit(scope, { ...end, outcome: 'interrupted' })
    return { kind: 'result', site, outcome: interruptedOutcome(), decided }
  }
  await grantSession(scope, claimed)
  // The request that reports the approval to the provider claims the call again, and records its outcome.
  if (call.tool.location === 'provider') return { kind: 'forwarded', site, decided }
  await audit(scope, { ...end, outcome: 'handed-out' })
  return { kind: 'handed-out', site, input: call.args, decided }
}

function unknownHandOut({ ref: { approvalId } }: Claim): Refusal {
  const message =
    'The ledger did not say in time whether the call is handed out; send the answer again later.'
  return { approvalId, code: 'ledger-unavailable', message, fate: 'open' }
}

function execute(
  scope: RunScope,
  { verdict, call, messages }: ClaimedCall,
  tool: Extract<AgentTool, { location: 'server' }>,
) {
  const { id: toolCallId, name: toolName } = call
  const leave = abortLater(scope.stop, scope.settings.approvals.waitMs)
  return executeTool({
    tool,
    input: call.input,
    signal: scope.callerSignal,
    leave: tool.timeout === undefined ? leave.signal : undefined,
    maxSize: scope.settings.limits.resultSize,
    context: {
      toolCallId,
      threadId: scope.threadId,
      runId: scope.runId,
      messages,
      context: scope.context,
      approved: true,
      idempotencyKey: verdict.approvalId,
    },
    stream: async (data) => scope.emit(progressEvent(toolCallId, toolName, data)),
    report: (data) => scope.report(progressEvent(toolCallId, toolName, data)),
    ask: (question, over) => askPerson(scope, call, question, over),
  }).finally(leave.cancel)
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
      // An idempotent tool may run again for the same answer, so its failure is not final.
      await complete(scope, claim, tool.idempotent ? { type: 'interrupted' } : toStored(execution.failure))
      return { kind: 'threw', site, error: toolFailed(name, execution.error) }
    }
    default:
      return execution satisfies never
  }
}
