import { amountOf, spend } from '../mandates/budget.js'
import { mayMeetAll, meetsAll } from '../mandates/constraint.js'
import type { Grant, GrantRequest, Mandate, MandateCall } from './grant.js'
import { isLive } from './grant-row.js'

/** A grant that is narrower than its tool. */
export type MandateGrant = Grant & { readonly terms: Mandate }

export function isMandate(grant: Grant): grant is MandateGrant {
  return grant.terms !== undefined
}

/**
 * Mandates of one tool in one conversation, and as many standing denials: the oldest mandate without limits is dropped first, others never. They
 * share a row, because each call is matched with all.
 */
const MAX_MANDATES = 64

/** Characters of all their conditions and reasons: what the model and the user decide the length of. */
const MAX_TEXT = 65_536

/** Whether mandates of one tool, or its standing denials, may be kept together. */
function fits(mandates: readonly MandateGrant[]): boolean {
  const text = mandates.reduce((sum, { terms }) => sum + textOf(terms), 0)
  return mandates.length <= MAX_MANDATES && text <= MAX_TEXT
}

function textOf({ where, reason = '' }: Mandate): number {
  return JSON.stringify(where).length + JSON.stringify(reason).length
}

/**
 * The latest uses that can be given back, per mandate. A use is given back within moments or never, so this bounds how many calls can be
 * about to start at once.
 */
const MAX_RECENT = 128

/** What was found for a call and, if a use was counted, the mandates as they are then. */
export interface MandateUse {
  readonly found?: MandateGrant | undefined
  readonly left?: readonly MandateGrant[] | undefined
}

/**
 * The denial that may refuse a call. A new version of its tool, and an epoch, end mandates; a denial is safe to keep, so it stays, and it
 * refuses what can't be decided.
 */
export function findDenial(
  denials: readonly MandateGrant[],
  { input }: MandateCall,
  now: number,
): MandateGrant | undefined {
  return denials.find((grant) => isLive(grant, now) && mayMeetAll(input, grant.terms.where))
}

/** The oldest mandate that lets a call through. `use` counts the use and debits the budget. */
export function useMandate(
  mandates: readonly MandateGrant[],
  call: MandateCall,
  purpose: 'look' | 'use',
  now: number,
): MandateUse {
  const again = mandates.find(({ terms }) => terms.recent.some(([key]) => key === call.callKey))
  const applying = mandates.filter((grant) => applies(grant, call, now))
  // A use whose reply was lost is not counted twice.
  if (purpose === 'use' && again !== undefined) return { found: again }
  for (const grant of applying) {
    const left = charged(grant, call, now)
    if (left === undefined) continue
    if (purpose === 'look') return { found: grant }
    return { found: left, left: mandates.map((one) => (one === grant ? left : one)) }
  }
  return {}
}

function applies(grant: MandateGrant, { tool, input, since }: MandateCall, now: number): boolean {
  const { terms, grantedAt } = grant
  return isLive(grant, now) && grantedAt >= since && terms.tool === tool && meetsAll(input, terms.where)
}

/** A mandate after a use; undefined if the rest of its budget does not cover the call. */
function charged(
  grant: MandateGrant,
  { input, callKey }: MandateCall,
  now: number,
): MandateGrant | undefined {
  const { terms, usesLeft } = grant
  const { budget } = terms
  const amount = budget === undefined ? 0 : amountOf(input, budget)
  const spent = amount === undefined ? undefined : spend(terms.spent, amount, budget?.total ?? 0)
  if (amount === undefined || spent === undefined) return undefined
  const recent = [...terms.recent.slice(1 - MAX_RECENT), [callKey, amount] as const]
  return {
    ...grant,
    ...(usesLeft !== undefined && { usesLeft: usesLeft - 1 }),
    terms: { ...terms, spent, used: terms.used + 1, lastUsedAt: now, recent },
  }
}

/** The mandates after the use of a call was given back; undefined if there is none to give back. */
export function returnUse(
  mandates: readonly MandateGrant[],
  callKey: string,
): readonly MandateGrant[] | undefined {
  const grant = mandates.find(({ terms }) => terms.recent.some(([key]) => key === callKey))
  if (grant === undefined) return undefined
  const { terms, usesLeft } = grant
  const [, amount = 0] = terms.recent.find(([key]) => key === callKey) ?? []
  const returned: MandateGrant = {
    ...grant,
    ...(usesLeft !== undefined && { usesLeft: usesLeft + 1 }),
    terms: {
      ...terms,
      spent: spend(terms.spent, -amount, terms.budget?.total ?? 0) ?? terms.spent,
      used: terms.used - 1,
      recent: terms.recent.filter(([key]) => key !== callKey),
    },
  }
  return mandates.map((one) => (one === grant ? returned : one))
}

/**
 * The mandates with a new one, which replaces an earlier one with the same terms: unless the user was asked before that was given, and has
 * chosen the same one for several calls. The call that it was chosen for counts, if it matches. Undefined if nothing changes, as for the same
 * approval again. After a revocation none is given, and one that is in force counts the call all the same.
 * `uncounted`: none does, and the call needs to be counted. `full`: there is no room, and it needs not.
 */
export function addMandate(
  mandates: readonly MandateGrant[],
  grant: MandateGrant,
  given: Pick<GrantRequest, 'call' | 'askedAt' | 'age'> & { readonly isRevoked?: boolean },
  now: number,
): readonly MandateGrant[] | 'exceeded' | 'uncounted' | 'full' | undefined {
  const { call, askedAt = Number.POSITIVE_INFINITY, age, isRevoked = false } = given
  const { approvalId } = grant.terms
  const same = mandates.find((one) => one.scopeKey === grant.scopeKey && now < one.expiresAt)
  const chosenAt = same?.terms.chosenAt ?? same?.grantedAt ?? 0
  const isOwn = same?.terms.approvalId === approvalId
  if (same !== undefined && (isOwn ? age !== undefined || isRevoked : askedAt <= chosenAt)) {
    if (call === undefined || !meetsAll(call.input, same.terms.where)) return undefined
    if (same.terms.recent.some(([key]) => key === call.callKey)) return undefined
    const more = applies(same, call, now) ? charged(same, call, now) : undefined
    return more === undefined ? 'exceeded' : mandates.map((one) => (one === same ? more : one))
  }
  if (isRevoked && isLimited(grant, call)) return 'uncounted'
  if (isRevoked || now >= grant.expiresAt || isOwn) return undefined
  // Nothing counts the call of another version of the tool.
  if (call !== undefined && call.tool !== grant.terms.tool && meetsAll(call.input, grant.terms.where))
    return 'exceeded'
  const first = call && applies(grant, call, now) ? charged(grant, call, now) : undefined
  const kept = mandates.filter((one) => one.scopeKey !== grant.scopeKey && now < one.expiresAt)
  while (!fits([...kept, grant])) {
    const oldest = kept.findIndex((one) => !hasLimits(one))
    if (oldest === -1) return isLimited(grant, call) ? 'uncounted' : 'full'
    kept.splice(oldest, 1)
  }
  return [...kept, first ?? grant]
}

/** Whether a mandate bounds how many calls start. If it were dropped, it would begin anew for a request that was open before it was chosen. */
export function hasLimits({ terms, usesLeft }: MandateGrant): boolean {
  return terms.budget !== undefined || usesLeft !== undefined
}

/** Whether a mandate bounds how many calls like this one start: then each of them has to be counted. */
export function isLimited(grant: MandateGrant, call: MandateCall | undefined): boolean {
  return hasLimits(grant) && call !== undefined && meetsAll(call.input, grant.terms.where)
}

/** Mandates in a few characters: of the uses that can be given back, only the latest of each. The others count. */
export function withFewUses(mandates: readonly MandateGrant[]): readonly MandateGrant[] {
  return mandates.map((one) => ({ ...one, terms: { ...one.terms, recent: one.terms.recent.slice(-1) } }))
}

/**
 * The denials with a new one, and that one as it is then. One with the same terms stays and, if need be, ends later: the answer of either
 * approval may turn out not to count. `left` is undefined if there is no room.
 */
export function addDenial(
  denials: readonly MandateGrant[],
  grant: MandateGrant,
  now: number,
): { readonly stored: MandateGrant; readonly left: readonly MandateGrant[] | undefined } {
  const live = denials.filter((one) => now < one.expiresAt)
  const { approvalId } = grant.terms
  const known = live.find((one) => one.scopeKey === grant.scopeKey)
  const { approvals = [] } = known?.terms ?? {}
  const isNew = !approvals.includes(approvalId) && approvals.length < MAX_RECENT
  const base = known ?? grant
  const stored = {
    ...base,
    expiresAt: Math.max(base.expiresAt, grant.expiresAt),
    terms: { ...base.terms, approvals: isNew ? [...approvals, approvalId] : approvals },
  }
  if (known !== undefined) return { stored, left: live.map((one) => (one === known ? stored : one)) }
  return { stored, left: fits([...live, stored]) ? [...live, stored] : undefined }
}

/** A denial without an approval that has taken it back; undefined if no other has chosen it. One that is too common to be counted stays. */
export function withoutApproval(grant: MandateGrant, approvalId: string): MandateGrant | undefined {
  const { approvals = [] } = grant.terms
  if (approvals.length >= MAX_RECENT) return grant
  const left = approvals.filter((one) => one !== approvalId)
  return left.length === 0 ? undefined : { ...grant, terms: { ...grant.terms, approvals: left } }
}
