import {
  type AnyServerTool,
  type CountersignError,
  failed,
  type Message,
  type ToolFailure,
  type ToolOutcome,
} from '@countersign/core'
import { toStored } from '../answers/stored-outcome.js'
import { sha256 } from '../encoding/digest.js'
import { type ApprovalRequiredError, isApprovalRequired, isMaskOf } from '../gate/approval-required.js'
import { type ApprovalRequest, requestApproval } from '../gate/ask.js'
import { decideGate } from '../gate/gate.js'
import { useGrant } from '../gate/grants.js'
import { termsOf } from '../gate/terms.js'
import { type AuditEntry, ledgerKey } from '../ledger/ledger.js'
import { askPerson } from '../scope/ask-person.js'
import { audit } from '../scope/audit.js'
import { gateContext, type RunScope } from '../scope/scope.js'
import { type ProposedCall, type ReadyCall, readCall } from '../tools/call.js'
import { type Execution, executeTool, outcomeOf } from '../tools/execute.js'
import { progressEvent } from '../tools/progress.js'
import { logThrown, toolFailed } from '../tools/tool-errors.js'

/** What is to happen with a call that the model has just made. */
export type FreshDecision =
  | { readonly kind: 'refused'; readonly outcome: ToolOutcome }
  /** `approved`: by the application's policy or, `granted`, by a standing session approval. */
  | {
      readonly kind: 'run'
      readonly call: ReadyCall
      readonly tool: AnyServerTool
      readonly approved: boolean
      readonly granted: boolean
    }
  | { readonly kind: 'client'; readonly call: ReadyCall }
  | { readonly kind: 'ask'; readonly request: ApprovalRequest }

/** Decides about one call, once: it is refused, runs, is left to the client, or the person is asked. */
export async function decideFresh(
  scope: RunScope,
  proposed: ProposedCall,
  messages: readonly Message[],
): Promise<FreshDecision> {
  const read = await readCall(scope.toolkit, proposed)
  if (!read.ok) {
    if ('error' in read) logThrown(scope.settings.warn, read.error, proposed.name, proposed.id)
    return refused(proposed, read.failure)
  }
  const { call } = read
  const { approvals, warn } = scope.settings
  const context = gateContext(scope, call.id, messages)
  const gate = await decideGate(call, context, { policy: approvals.policy, warn })
  switch (gate.kind) {
    case 'block':
      return refused(proposed, failed('denied', gate.reason))
    case 'run':
      return cleared(call, gate.approved)
    case 'ask': {
      if (await useGrant(scope, call)) return cleared(call, true, true)
      const { approvalId } = proposed
      const own = approvalId === undefined ? {} : { approvalId, scopes: ['once' as const] }
      const asking = await requestApproval(scope, call, context, own)
      return asking.ok ? { kind: 'ask', request: asking.request } : refused(proposed, asking.failure)
    }
    default:
      return gate satisfies never
  }
}

/** A provider's call was never tried: its provider is told no. */
function refused({ providerExecuted }: ProposedCall, failure: ToolFailure): FreshDecision {
  if (!providerExecuted || failure.kind === 'denied') return { kind: 'refused', outcome: failure }
  return { kind: 'refused', outcome: failed('cancelled', failure.reason, failure.code) }
}

function cleared(call: ReadyCall, approved: boolean, granted = false): FreshDecision {
  const { tool } = call
  return tool.location === 'server'
    ? { kind: 'run', call, tool, approved, granted }
    : { kind: 'client', call }
}

/** How a call that needed nobody's yes ended. */
export type FreshResult =
  | { readonly kind: 'outcome'; readonly outcome: ToolOutcome }
  /** The tool itself found that it needs one. */
  | { readonly kind: 'ask'; readonly request: ApprovalRequest }
  | { readonly kind: 'threw'; readonly error: CountersignError }

/** Runs a call that needs nobody's yes. It stops with the run. */
export async function runFresh(
  scope: RunScope,
  decision: Extract<FreshDecision, { kind: 'run' }>,
  messages: readonly Message[],
): Promise<FreshResult> {
  const { call, tool, approved, granted } = decision
  const { id: toolCallId, name } = call
  const told = { toolCallId, toolName: name, via: 'grant' }
  if (granted) await audit(scope, { event: 'started', ...told })
  const execution = await executeTool({
    tool,
    input: call.input,
    signal: scope.stop,
    onAbort: 'leave',
    context: {
      toolCallId,
      threadId: scope.threadId,
      runId: scope.runId,
      messages,
      context: scope.context,
      approved,
      idempotencyKey: await freshKey(scope, toolCallId),
    },
    stream: (data) => scope.emit(progressEvent(toolCallId, name, data)),
    report: (data) => scope.report(progressEvent(toolCallId, name, data)),
    ask: (question, over) => askPerson(scope, call, question, over),
  })
  if (granted) await audit(scope, { event: 'completed', ...told, outcome: endOf(execution) })
  if (execution.kind === 'threw') {
    if (!approved && isApprovalRequired(execution.error))
      return askAfterAll(scope, decision, messages, execution.error)
    if (tool.failureMode === 'throw') return { kind: 'threw', error: toolFailed(name, execution.error) }
    logThrown(scope.settings.warn, execution.error, name, toolCallId)
  }
  return { kind: 'outcome', outcome: outcomeOf(execution) }
}

/** The same for the same call of the same run, and for no other of any person: ids of threads, runs and calls are not ours to choose. */
async function freshKey({ owner, threadId, runId }: RunScope, toolCallId: string): Promise<string> {
  return `call_${await sha256(ledgerKey(owner, threadId, runId, toolCallId))}`
}

/** How an execution ended, in the word of the audit trail. */
function endOf(execution: Execution): AuditEntry['outcome'] {
  switch (execution.kind) {
    case 'finished':
      return toStored(execution.outcome).type
    case 'interrupted':
      return 'interrupted'
    case 'threw':
      return 'error'
    default:
      return execution satisfies never
  }
}

/** A tool that threw an `ApprovalRequiredError`: a grant lets it run again, else the person is asked. */
async function askAfterAll(
  scope: RunScope,
  decision: Extract<FreshDecision, { kind: 'run' }>,
  messages: readonly Message[],
  { message, args, options }: ApprovalRequiredError,
): Promise<FreshResult> {
  const { call } = decision
  if (await useGrant(scope, call))
    return runFresh(scope, { ...decision, approved: true, granted: true }, messages)
  const offered = termsOf(call.tool).scopes
  const isShown = [call.args, call.input].some((real) => args !== undefined && isMaskOf(args, real))
  if (args !== undefined && !isShown)
    scope.settings.warn(
      `The arguments that ${call.name} wants shown are not those of its call, which are shown.`,
    )
  const asking = await requestApproval(scope, call, gateContext(scope, call.id, messages), {
    scopes: offered.filter((option) => options.includes(option)),
    shown: { message, ...(isShown && { display: args }) },
  })
  return asking.ok ? { kind: 'ask', request: asking.request } : { kind: 'outcome', outcome: asking.failure }
}
