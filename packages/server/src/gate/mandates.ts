import type { GateContext } from '@countersign/core'
import { canonicalJson } from '../encoding/canonical.js'
import { copyOf } from '../encoding/copy.js'
import { callHook, isLeft } from '../encoding/hooks.js'
import type { MandateCall } from '../ledger/grant.js'
import { type OfferedMandates, readOffers } from '../mandates/offer.js'
import type { RunScope } from '../scope/scope.js'
import type { ReadyCall } from '../tools/call.js'
import { toolDigest } from './tool-digest.js'

/**
 * The mandates that a tool offers with the approval request for a call. None if nobody could own one, or the ledger keeps none; what a
 * tool offers by mistake is not offered at all.
 */
export async function offerMandates(
  scope: RunScope,
  call: ReadyCall,
  gate: GateContext,
): Promise<OfferedMandates | undefined> {
  const { tool } = call
  const { mandates } = tool
  const { approvals, warn } = scope.settings
  if (mandates === undefined || scope.owner === null || approvals.ledger.findMandate === undefined)
    return undefined
  try {
    const offers = readOffers(await callHook(scope.leave, () => mandates(copyOf(call.input) as never, gate)))
    return offers.length === 0 ? undefined : { tool: await toolDigest(tool), offers }
  } catch (error) {
    if (isLeft(error)) throw error
    warn(`The mandates of ${call.name} are not offered.`, error)
    return undefined
  }
}

/** A call as mandates are matched with it; undefined if none can apply. */
export async function mandateCall(
  { settings, owner, threadId }: RunScope,
  { tool, name, input }: ReadyCall,
  callKey: string,
): Promise<MandateCall | undefined> {
  if (tool.mandates === undefined || owner === null) return undefined
  const { toolServer } = tool
  const { epoch: since } = settings.approvals
  // Without a digest no mandate applies; denials do.
  const digest = await toolDigest(tool).catch(() => '')
  return { owner, threadId, toolName: name, toolServer, tool: digest, input, callKey, since }
}

/** Mandates as RFC 8785 text, to be bound. */
export function mandatesText(offered: OfferedMandates | undefined): string | undefined {
  const written = canonicalJson(offered ?? null)
  return offered !== undefined && written.ok ? written.canonical : undefined
}
