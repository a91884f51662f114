import { CountersignError } from '@countersign/core'
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

export function isScopeKey(key: unknown): key is string | number | boolean {
  return typeof key === 'string' || typeof key === 'boolean' || Number.isFinite(key)
}

/**
 * Converts a scope key to the text in {@link GrantKey}. Different values never share a text.
 *
 * @throws CountersignError `invalid-argument` for anything else.
 */
export function scopeKeyText(key: string | number | boolean): string {
  if (!isScopeKey(key)) {
    const message = `A scope key must be text, a finite number or a boolean, not ${inWords(key)}.`
    throw new CountersignError('invalid-argument', message)
  }
  return typeof key === 'string' && !key.startsWith('=') ? key : `=${JSON.stringify(key)}`
}

export interface GrantRequest extends GrantKey {
  /** `false` stores a denial for display; it never allows anything. */
  readonly approved: boolean
  /** Milliseconds from now. Default: the ledger's `grantTtl`. */
  readonly ttl?: number | undefined
  /** How often the grant may be used. Default: without limit until it expires. */
  readonly uses?: number | undefined
  /**
   * From the claim of the verdict that leads to this grant. If this owner has revoked anything since, the grant is refused.
   * Omitted only by the application's own server code.
   */
  readonly revision?: number | undefined
}

export interface Grant extends GrantKey {
  /** Identifies this grant to its owner; not a secret. */
  readonly id: string
  readonly approved: boolean
  /** Milliseconds since the epoch. */
  readonly grantedAt: number
  readonly expiresAt: number
  readonly usesLeft?: number | undefined
}

export type GrantResult =
  | { readonly status: 'granted'; readonly grant: Grant }
  /** A revocation came after the verdict was claimed. */
  | { readonly status: 'revoked' }
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
}
