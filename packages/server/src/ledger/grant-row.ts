import { copyOf } from '../encoding/copy.js'
import { randomId } from '../encoding/ids.js'
import type { Grant, GrantRequest, GrantSelector, MandateTerms } from './grant.js'
import { MAX_REASON_LENGTH, NEVER } from './ledger.js'

/**
 * Creates the grant for a request at `now`; `ttl` is the lifetime if the request has none, in milliseconds. A standing denial without one
 * never ends: what it refuses would run.
 */
export function newGrant(request: GrantRequest, now: number, ttl: number): Grant {
  const { owner, threadId, toolName, toolServer, scopeKey, approved, uses, tool, terms } = request
  const lifetime = terms !== undefined && !approved ? NEVER : ttl
  return {
    ...{ id: randomId('grant_'), owner, threadId, toolName, toolServer, scopeKey, approved },
    grantedAt: now,
    expiresAt: Math.min(now + (request.ttl ?? lifetime) - (request.age ?? 0), NEVER),
    usesLeft: uses,
    tool,
    ...(terms !== undefined && { terms: { ...bounded(terms), used: 0, spent: 0, recent: [] } }),
  }
}

/** A copy with a reason as short as the ledger keeps others. */
function bounded(terms: MandateTerms): MandateTerms {
  return copyOf({ ...terms, reason: terms.reason?.slice(0, MAX_REASON_LENGTH) })
}

/** Whether a grant has neither expired nor been used up. */
export function isLive(grant: Grant, now: number): boolean {
  return now < grant.expiresAt && grant.usesLeft !== 0
}

/** What `findGrant` finds, and the grant that remains if one of its limited uses was consumed. */
export function takeGrant(
  grant: Grant | undefined,
  purpose: 'look' | 'use',
  now: number,
): { readonly found?: Grant; readonly left?: Grant } {
  if (grant === undefined || !isLive(grant, now)) return {}
  if (purpose === 'look') return { found: grant }
  if (!grant.approved) return {}
  return grant.usesLeft === undefined
    ? { found: grant }
    : { found: grant, left: { ...grant, usesLeft: grant.usesLeft - 1 } }
}

/** Whether a grant matches a selector. */
export function matches(grant: Grant, selector: GrantSelector): boolean {
  const { owner, id, threadId, toolName, toolServer, scopeKey, approvalId } = selector
  return (
    owner === grant.owner &&
    (id === undefined || id === grant.id) &&
    (threadId === undefined || threadId === grant.threadId) &&
    (toolName === undefined || toolName === grant.toolName) &&
    (toolServer === undefined || toolServer === grant.toolServer) &&
    (scopeKey === undefined || scopeKey === grant.scopeKey) &&
    (approvalId === undefined || grant.terms?.approvals?.includes(approvalId) === true)
  )
}
