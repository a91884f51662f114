import { CountersignError } from '@countersign/core'
import { inWords } from '../encoding/in-words.js'

/** What a grant covers. Its owner is never null: without a subject a session scope counts as `once`. */
export interface GrantKey {
  readonly owner: string
  readonly threadId: string
  readonly toolName: string
  readonly toolServer?: string | undefined
  /**
   * What the tool's `scopeKey(input)` made of the arguments that ran: text as it is, a number or a boolean as `=` and its JSON, and text that
   * begins with `=` likewise. The tool's name where it has no `scopeKey`.
   */
  readonly scopeKey: string
}

export function isScopeKey(key: unknown): key is string | number | boolean {
  return typeof key === 'string' || typeof key === 'boolean' || Number.isFinite(key)
}

/**
 * A scope key as {@link GrantKey} has it. No two values have the same.
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
  /** `false` remembers a no for display; it never allows anything. */
  readonly approved: boolean
  /** Milliseconds from now. Default: the ledger's. */
  readonly ttl?: number | undefined
  /** How often it may be used. Default: without limit until it expires. */
  readonly uses?: number | undefined
  /**
   * From the claim of the verdict that made it. A revocation by this owner since then wins and the grant is not made.
   * Left out only by the application's own server code.
   */
  readonly revision?: number | undefined
}

export interface Grant extends GrantKey {
  /** Names this grant to its owner; not a secret. */
  readonly id: string
  readonly approved: boolean
  /** Milliseconds since the epoch. */
  readonly grantedAt: number
  readonly expiresAt: number
  readonly usesLeft?: number | undefined
}

export type GrantResult =
  | { readonly status: 'granted'; readonly grant: Grant }
  /** Revoked after the verdict was claimed. */
  | { readonly status: 'revoked' }
  /** This ledger keeps no grants: a session scope counts as `once`. */
  | { readonly status: 'unsupported' }

/** The grants that all given members match. Only `owner`: all of theirs. */
export interface GrantSelector {
  readonly owner: string
  readonly threadId?: string | undefined
  readonly toolName?: string | undefined
  readonly toolServer?: string | undefined
  readonly scopeKey?: string | undefined
  readonly id?: string | undefined
}
