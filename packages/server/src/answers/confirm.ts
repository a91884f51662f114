import { copyOf } from '../encoding/copy.js'
import { callHook, isLeft } from '../encoding/hooks.js'
import { type ApprovalRequest, describeRequest, requestOf } from '../gate/ask.js'
import { proposedCall } from '../history/history.js'
import type { RunScope } from '../scope/scope.js'
import { readCall } from '../tools/call.js'
import type { Settlement } from './prepare.js'

/**
 * Whether the application's `confirm` accepts an answer. Called once, right before the answer is claimed in the ledger, with the context
 * of whoever answers. Anything but `true` refuses the answer, in words by which `nextStep` of the client knows it.
 */
export async function isConfirmed(scope: RunScope, settlement: Settlement): Promise<boolean> {
  const { approvals, warn } = scope.settings
  const { confirm } = approvals
  if (confirm === undefined) return true
  const { verdict } = settlement
  const { approvalId, site, decision, reason, mandate, payload, token, via, context } = verdict
  const { id: toolCallId, function: called } = site.call
  const request = await describe(scope, settlement)
  const answered = {
    ...{ approvalId, toolCallId, toolName: called.name, decision, scope: verdict.scope },
    ...(reason !== undefined && { reason }),
    ...(mandate !== undefined && { mandate }),
    ...{ payload, token, via },
    arguments: settlement.kind === 'run' ? copyOf(settlement.call.args) : JSON.parse(verdict.canonical),
  }
  try {
    return (await callHook(scope.leave, () => confirm(answered, { context, request }))) === true
  } catch (error) {
    if (isLeft(error)) throw error
    warn(`confirm failed for ${called.name}; the answer is refused.`, error)
    return false
  }
}

/** The request as the user received it, without what the tool can no longer describe. */
async function describe(scope: RunScope, { verdict, record }: Settlement): Promise<ApprovalRequest> {
  const { site, canonical, claims, token } = verdict
  const { id, function: called } = site.call
  const { shown, mandates, preview, previous } = record ?? {}
  const terms = { ...claims, token, shown, mandates, preview, previous }
  const read = await readCall(scope, proposedCall(site, canonical))
  try {
    if (read.ok) return describeRequest(scope, read.call, terms)
  } catch (error) {
    scope.settings.warn(`The request for ${called.name} cannot be described any more.`, error)
  }
  return requestOf(scope, { id, name: called.name, args: JSON.parse(canonical) }, terms, shown ?? {})
}
