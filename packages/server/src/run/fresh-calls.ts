import type {
  AnyServerTool,
  ApprovalDecided,
  CountersignError,
  GateContext,
  Message,
} from '@countersign/core'
import { toStored } from '../answers/outcome.js'
import { sha256 } from '../encoding/bytes.js'
import { unlessLeft } from '../encoding/hooks.js'
import { type ApprovalRequiredError, isApprovalRequired, isMaskOf } from '../gate/approval-required.js'
import { type ApprovalRequest, requestApproval } from '../gate/ask.js'
import { decideGate, type GateDecision, recordShadow, termsOf } from '../gate/gate.js'
import {
  auditGrant,
  decidedByGrant,
  findPermission,
  type Permission,
  reasonOfDenial,
  returnUse,
} from '../gate/grants.js'
import { computePreview } from '../gate/preview.js'
import type { Grant } from '../ledger/grant.js'
import { type AuditEntry, ledgerKey } from '../ledger/ledger.js'
import { failed, type ToolFailure, type ToolOutcome } from '../outcome.js'
import { audit } from '../scope/audit.js'
import { runTool } from '../scope/run-tool.js'
import { gateContext, type RunScope } from '../scope/scope.js'
import { type ProposedCall, type ReadyCall, readCall } from '../tools/call.js'
import { NOT_STARTED } from '../tools/execute.js'
import { type Execution, outcomeOf } from '../tools/execution.js'
import { logThrown, toolFailed } from '../tools/tool-errors.js'

export type FreshDecision =
  | {
      readonly kind: 'refused'
      readonly outcome: ToolFailure
      /** The standing denial that refuses it. */
      readonly decided?: ApprovalDecided | undefined
    }
  | {
      readonly kind: 'run'
      readonly call: ReadyCall
      readonly tool: AnyServerTool
      /** The session grant or mandate, which is used when the call starts. */
      readonly granted: Grant | undefined
      /** What the tool's own rule returned; undefined if the policy decided instead. */
      readonly needed: boolean | undefined
      /** What the tool itself requires approval for, discovered when it ran without one. */
      readonly required?: ApprovalRequiredError | undefined
    }
  /** `isStanding`: a standing decision of the user's may apply to it, so {@link handOutFresh} has to check it again. */
  | {
      readonly kind: 'client'
      readonly call: ReadyCall
      readonly needed: boolean | undefined
      readonly isStanding: boolean
    }
  | { readonly kind: 'ask'; readonly request: ApprovalRequest }

/** Decides about a new call, once: it is refused, runs, is left to the client, or needs approval. */
export async function decideFresh(
  scope: RunScope,
  proposed: ProposedCall,
  messages: readonly Message[],
): Promise<FreshDecision> {
  const read = await readCall(scope, proposed)
  if (!read.ok) {
    if ('error' in read) logThrown(scope.settings.warn, read.error, proposed.name, proposed.id)
    return refused(proposed, read.failure)
  }
  const { call } = read
  const context = gateContext(scope, call.id, messages)
  const gate = await decideGate(scope, call, context)
  await recordShadow(scope, call, context, gate)
  if (gate.kind === 'block') return refused(proposed, failed('denied', gate.reason))
  // It is used when the call starts: for a client tool, when it is handed out.
  const standing = await standingPermission(scope, call, gate, 'look')
  if (standing.kind === 'denied') {
    const { outcome, decided } = await deniedBy(scope, call, standing.grant)
    return { ...refused(proposed, outcome), decided }
  }
  // Whether the call is denied is not known: an approval request can't be made either, so it is refused.
  const decision = gate.kind === 'run' && standing.kind === 'unknown' ? ({ kind: 'ask' } as const) : gate
  switch (decision.kind) {
    case 'run':
      return cleared(call, undefined, decision.approved ? undefined : false)
    case 'ask': {
      if (standing.kind === 'granted') return cleared(call, standing.grant, true)
      const { approvalId } = proposed
      const own = approvalId === undefined ? {} : { approvalId, scopes: ['once' as const] }
      const asking = await requestApproval(scope, call, context, own)
      return asking.ok ? { kind: 'ask', request: asking.request } : refused(proposed, asking.failure)
    }
    default:
      return decision satisfies never
  }
}

/**
 * What the user's standing decisions say about a call: any for one that needs approval, only a denial for another. Not async, because a
 * start must follow the ledger's reply at once.
 */
function standingPermission(
  scope: RunScope,
  call: ReadyCall,
  { kind }: GateDecision,
  purpose: 'look' | 'use',
): Promise<Permission> {
  if (kind === 'ask') return findPermission(scope, call, purpose)
  return call.tool.mandates === undefined ? Promise.resolve(NONE) : findPermission(scope, call, 'denial')
}

/** A refused provider call has not been tried: for the provider it is a denial. */
function refused(
  { providerExecuted }: ProposedCall,
  failure: ToolFailure,
): Extract<FreshDecision, { kind: 'refused' }> {
  if (!providerExecuted || failure.kind === 'denied') return { kind: 'refused', outcome: failure }
  return { kind: 'refused', outcome: failed('cancelled', failure.reason, failure.code) }
}

function cleared(call: ReadyCall, granted: Grant | undefined, needed: boolean | undefined): FreshDecision {
  const { tool } = call
  if (tool.location === 'server') return { kind: 'run', call, tool, granted, needed }
  return { kind: 'client', call, needed, isStanding: granted !== undefined || tool.mandates !== undefined }
}

export type FreshResult =
  | {
      readonly kind: 'result'
      readonly outcome: ToolOutcome
      /** The mandate that let it through, or the standing denial that refused it. */
      readonly decided?: ApprovalDecided | undefined
    }
  /** The tool itself requires approval. */
  | { readonly kind: 'ask'; readonly request: ApprovalRequest }
  | { readonly kind: 'client' }
  | { readonly kind: 'threw'; readonly error: CountersignError }

/**
 * Runs a call that needs no approval request. It stops with the run. The policy is consulted again, because the call may have waited for its
 * turn or for the reader. A session grant is used last: nothing is awaited between that and the start.
 */
export async function runFresh(
  scope: RunScope,
  decision: Extract<FreshDecision, { kind: 'run' }>,
  messages: readonly Message[],
  messageId: string,
): Promise<FreshResult> {
  const { call, tool, granted, needed } = decision
  const { id: toolCallId, name } = call
  const told = { toolCallId, toolName: name, via: 'grant' }
  if (granted) {
    await auditGrant(scope, call, granted)
    await audit(scope, { event: 'started', ...told })
  }
  const context = gateContext(scope, toolCallId, messages)
  const gate = await decideGate(scope, call, context, { needed }).catch(unlessLeft)
  const idempotencyKey = await freshKey(scope, toolCallId)
  const preview = tool.previewUnasked
    ? await computePreview(scope, call, context).catch(unlessLeft)
    : undefined
  if (gate === undefined || scope.leave.aborted) {
    if (granted) await audit(scope, { event: 'completed', ...told, outcome: 'cancelled' })
    return { kind: 'result', outcome: notRun() }
  }
  const asks = gate.kind === 'ask' || decision.required !== undefined
  const standing =
    gate.kind === 'block' || (asks && !granted)
      ? NONE
      : await standingPermission(scope, call, asks ? ASK : gate, 'use')
  const mayStart =
    gate.kind !== 'block' &&
    (asks ? standing.kind === 'granted' : standing.kind !== 'denied' && standing.kind !== 'unknown')
  if (!mayStart) {
    if (granted) await audit(scope, { event: 'completed', ...told, outcome: 'cancelled' })
    if (gate.kind === 'block') return { kind: 'result', outcome: failed('denied', gate.reason) }
    if (standing.kind !== 'denied') return askNow(scope, call, context, decision.required)
    return deniedBy(scope, call, standing.grant)
  }
  const used = asks && standing.kind === 'granted' ? standing : undefined
  if (used !== undefined && scope.stop.aborted) await returnUse(scope, call, used.callKey)
  const approved = asks || (gate.kind === 'run' && gate.approved)
  const execution = await runTool(scope, call, tool, {
    ...{ messages, messageId, approved, idempotencyKey, leave: scope.stop },
    ...(preview !== undefined && { preview: preview.exact }),
  })
  if (granted) await audit(scope, { event: 'completed', ...told, outcome: endOf(execution) })
  if (execution.kind === 'threw') {
    if (!approved && isApprovalRequired(execution.error)) {
      const found = await findPermission(scope, call, 'look')
      return found.kind === 'granted'
        ? runFresh(
            scope,
            { ...decision, granted: found.grant, required: execution.error },
            messages,
            messageId,
          )
        : askNow(scope, call, context, execution.error)
    }
    if (tool.failureMode === 'throw') return { kind: 'threw', error: toolFailed(name, execution.error) }
    logThrown(scope.settings.warn, execution.error, name, toolCallId)
  }
  return { kind: 'result', outcome: outcomeOf(execution), decided: used && decidedByGrant(used.grant) }
}

/**
 * Hands a client tool's call out, once the other calls of its step have ended: a policy, a revocation or a standing denial from before then
 * counts. After that nobody can call it back.
 */
export async function handOutFresh(
  scope: RunScope,
  { call, needed }: Extract<FreshDecision, { kind: 'client' }>,
  messages: readonly Message[],
): Promise<FreshResult> {
  const context = gateContext(scope, call.id, messages)
  const gate = await decideGate(scope, call, context, { needed }).catch(unlessLeft)
  if (gate === undefined || scope.leave.aborted) return { kind: 'result', outcome: notRun() }
  if (gate.kind === 'block') return { kind: 'result', outcome: failed('denied', gate.reason) }
  const standing = await standingPermission(scope, call, gate, 'use')
  if (standing.kind === 'denied') return deniedBy(scope, call, standing.grant)
  if (standing.kind !== 'granted' && (gate.kind === 'ask' || standing.kind === 'unknown'))
    return askNow(scope, call, context, undefined)
  if (gate.kind === 'ask' && standing.kind === 'granted') await auditGrant(scope, call, standing.grant)
  return { kind: 'client' }
}

/** A standing denial refuses a call that was not asked about. */
async function deniedBy(scope: RunScope, call: ReadyCall, grant: Grant) {
  await auditGrant(scope, call, grant)
  const outcome = failed('denied', reasonOfDenial(grant))
  return { kind: 'result', outcome, decided: decidedByGrant(grant) } as const
}

const NONE: Permission = { kind: 'none' }
const ASK: GateDecision = { kind: 'ask' }

/** The same for the same call of the same run, different for any other call of any user: ids of threads, runs and calls are not ours. */
async function freshKey({ owner, threadId, runId }: RunScope, toolCallId: string): Promise<string> {
  return `call_${await sha256(ledgerKey(owner, threadId, runId, toolCallId))}`
}

/** How an execution ended, in the audit trail's terms. */
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

function notRun(): ToolFailure {
  return failed('cancelled', NOT_STARTED, 'aborted')
}

/** Requests approval for a call that was about to run: its grant or the policy's permission ended, or the tool itself requires approval. */
async function askNow(
  scope: RunScope,
  call: ReadyCall,
  context: GateContext,
  required: ApprovalRequiredError | undefined,
): Promise<FreshResult> {
  const own = required && termsOfError(scope, call, required)
  const asking = await requestApproval(scope, call, context, own).catch(unlessLeft)
  return asking?.ok
    ? { kind: 'ask', request: asking.request }
    : { kind: 'result', outcome: asking?.failure ?? notRun() }
}

/** The terms a tool may set when it requires approval: only scopes that it offers, and only its call's arguments, at most masked. */
function termsOfError(scope: RunScope, call: ReadyCall, { message, args, options }: ApprovalRequiredError) {
  const isShown = [call.args, call.input].some((real) => args !== undefined && isMaskOf(args, real))
  if (args !== undefined && !isShown)
    scope.settings.warn(
      `The arguments that ${call.name} wants shown are not those of its call, which are shown.`,
    )
  return {
    scopes: termsOf(call.tool).scopes.filter((option) => options.includes(option)),
    shown: { message, ...(isShown && { display: args }) },
  }
}
