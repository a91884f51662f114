import { type Constraint, CountersignError, type MandateBudget } from '@countersign/core'
import { inWords } from '../encoding/in-words.js'

/** What a grant covers. Its owner is never null: without a subject, the scope `session` counts as `once`. */
export interface GrantKey {
  readonly owner: string
  readonly threadId: string
  readonly toolName: string
  readonly toolServer?: string | undefined
  /**
   * What the tool's `scopeKey(input)` returned for the arguments that ran: a string as it is; a number, a boolean or a string that begins
   * with `=` as `=` and its JSON. The tool's name if it has no `scopeKey`.
   */
  readonly scopeKey: string
}

/** Characters of a scope key: the model may decide how long it is, and a user has 1,000 session approvals. */
export const MAX_SCOPE_KEY = 8192

export function isScopeKey(key: unknown): key is string | number | boolean {
  if (typeof key === 'string') return key.length <= MAX_SCOPE_KEY
  return typeof key === 'boolean' || Number.isFinite(key)
}

/**
 * Converts a scope key to the text in {@link GrantKey}. Different values never share a text.
 *
 * @throws CountersignError `invalid-argument` for anything else.
 */
export function scopeKeyText(key: string | number | boolean): string {
  if (!isScopeKey(key)) {
    const message = `A scope key must be text of at most ${MAX_SCOPE_KEY} characters, a finite number or a boolean; it is ${inWords(key)}.`
    throw new CountersignError('invalid-argument', message)
  }
  return typeof key === 'string' && !key.startsWith('=') ? key : `=${JSON.stringify(key)}`
}

/** As the tool of a session approval that the application gives in its own code: it counts for any version. */
export const ANY_TOOL = 'any'

export interface GrantRequest extends GrantKey {
  /** `false` stores a denial for display; it never allows anything. */
  readonly approved: boolean
  /** Milliseconds from now. Default: the ledger's `grantTtl`; a standing denial never ends. */
  readonly ttl?: number | undefined
  /** How often the grant may be used. Default: without limit until it expires. */
  readonly uses?: number | undefined
  /**
   * From the claim of the verdict that leads to this grant. If this owner has revoked anything since, the grant is refused.
   * Omitted only by the application's own server code.
   */
  readonly revision?: number | undefined
  /** The digest of the tool that a session approval was given for. It counts for no other version; without it, for none. */
  readonly tool?: string | undefined
  /** Makes the grant a mandate, which is narrower than its tool. Its `scopeKey` identifies its terms. */
  readonly terms?: MandateTerms | undefined
  /** The call that a mandate was chosen for: it counts, if it matches. */
  readonly call?: MandateCall | undefined
  /**
   * When the user was asked, in milliseconds since the epoch. A mandate with the same terms that was chosen after that is the one that is
   * meant: it goes on, and its limits cover this call too.
   */
  readonly askedAt?: number | undefined
  /**
   * If the call may have been tried before: how long ago the mandate was chosen, in milliseconds. Unless it was given then, it is given for the
   * rest of its time.
   */
  readonly age?: number | undefined
}

/** What a mandate lets through, or refuses. */
export interface MandateTerms {
  readonly label: string
  readonly where: readonly Constraint[]
  readonly budget?: MandateBudget | undefined
  /** The digest of the tool's schema and version. With another one, a mandate does not apply; a denial still does. */
  readonly tool: string
  /** The approval that it was chosen with. */
  readonly approvalId: string
  /** When the user chose it, by the clock of `askedAt`, which may differ from the ledger's. */
  readonly chosenAt?: number | undefined
  /** Why calls are refused, if it is a denial. */
  readonly reason?: string | undefined
}

/** The terms of a mandate, and how far it is used up. */
export interface Mandate extends MandateTerms {
  readonly used: number
  /** The part of the budget that is spent. */
  readonly spent: number
  /** Milliseconds since the epoch. */
  readonly lastUsedAt?: number | undefined
  /** The latest uses, each with its call and amount: those that can be given back. */
  readonly recent: readonly (readonly [callKey: string, amount: number])[]
  /** Every approval that a denial was chosen with: it ends only once all of them have taken it back. */
  readonly approvals?: readonly string[] | undefined
}

/** A call for which a mandate may be found. */
export interface MandateCall extends Omit<GrantKey, 'scopeKey'> {
  /** The digest of the tool's schema and version. */
  readonly tool: string
  /** Validated arguments. */
  readonly input: unknown
  /** Identifies the call, so that it counts once. */
  readonly callKey: string
  /** Mandates from before this moment do not apply; denials do. Milliseconds since the epoch. */
  readonly since: number
}

export interface Grant extends GrantKey {
  /** Identifies this grant to its owner; not a secret. */
  readonly id: string
  readonly approved: boolean
  /** Milliseconds since the epoch. */
  readonly grantedAt: number
  readonly expiresAt: number
  readonly usesLeft?: number | undefined
  /** See {@link GrantRequest}. */
  readonly tool?: string | undefined
  /** If the grant is narrower than its tool. `approved: false` then refuses calls. */
  readonly terms?: Mandate | undefined
}

export type GrantResult =
  | { readonly status: 'granted'; readonly grant: Grant }
  /** Nothing is given: a revocation came after the verdict was claimed, or the call was tried before and the mandate is given, or over. */
  | { readonly status: 'revoked' }
  /** There is no room for another standing denial, or for a mandate that would not count this call: no other is dropped for it. */
  | { readonly status: 'full' }
  /** The mandate is in force, and what is left of it does not cover the call, which must not start. */
  | { readonly status: 'exceeded' }
  /** The mandate limits the call and is not stored, for lack of room or after a revocation: nothing counts the call, which must not start. */
  | { readonly status: 'uncounted' }
  /** This ledger keeps no grants: the scope `session` counts as `once`. */
  | { readonly status: 'unsupported' }

/** Selects grants that match all given members. With `owner` alone: all of the owner's grants. */
export interface GrantSelector {
  readonly owner: string
  readonly threadId?: string | undefined
  readonly toolName?: string | undefined
  readonly toolServer?: string | undefined
  readonly scopeKey?: string | undefined
  readonly id?: string | undefined
  /**
   * Standing denials that were chosen with this approval, whose answer did not count. They stay as far as other approvals have chosen them.
   * This is no revocation: nothing in flight is voided.
   */
  readonly approvalId?: string | undefined
}
