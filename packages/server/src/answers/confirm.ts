import { copyOf } from '../encoding/copy.js'
import { type ApprovalRequest, describeRequest, requestOf } from '../gate/ask.js'
import { isProviderExecuted } from '../history/history.js'
import type { ShownTerms } from '../ledger/ledger.js'
import type { RunScope } from '../scope/scope.js'
import { readCall } from '../tools/call.js'
import type { Settlement } from './prepare.js'
import type { VerifiedVerdict } from './verdicts.js'

/**
 * Whether the application's `confirm` accepts an answer. Called once, right before the answer is claimed in the ledger, with the context
 * of whoever answers. Anything but `true` refuses the answer.
 */
export async function isConfirmed(
  scope: RunScope,
  settlement: Exclude<Settlement, { kind: 'repeat' }>,
): Promise<boolean> {
  const { approvals, warn } = scope.settings
  const { verdict } = settlement
  if (approvals.confirm === undefined) return true
  const { approvalId, site, decision, reason, payload, token, via, context } = verdict
  const { id: toolCallId, function: called } = site.call
  const request = await describe(scope, verdict, settlement.shown)
  const answered = {
    ...{ approvalId, toolCallId, toolName: called.name, decision, scope: verdict.scope },
    ...(reason !== undefined && { reason }),
    ...{ payload, token, via },
    arguments: settlement.kind === 'run' ? copyOf(settlement.call.args) : JSON.parse(verdict.canonical),
  }
  try {
    return (await approvals.confirm(answered, { context, request })) === true
  } catch (error) {
    warn(`confirm failed for ${called.name}; the answer is refused.`, error)
    return false
  }
}

/** The request as the user received it, without what the tool can no longer describe. */
async function describe(
  scope: RunScope,
  { site, canonical, claims, token }: VerifiedVerdict,
  shown: ShownTerms | undefined,
): Promise<ApprovalRequest> {
  const { id, function: called } = site.call
  const terms = { ...claims, token, shown }
  const providerExecuted = isProviderExecuted(site.call)
  const read = await readCall(scope.toolkit, {
    id,
    name: called.name,
    arguments: canonical,
    providerExecuted,
  })
  try {
    if (read.ok) return describeRequest(scope, read.call, terms)
  } catch (error) {
    scope.settings.warn(`The request for ${called.name} cannot be described any more.`, error)
  }
  return requestOf(scope, { id, name: called.name, args: JSON.parse(canonical) }, terms, shown ?? {})
}
