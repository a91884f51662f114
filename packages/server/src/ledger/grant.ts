/** What a grant covers. Its owner is never null: without a subject a session scope counts as `once`. */
export interface GrantKey {
  readonly owner: string
  readonly threadId: string
  readonly toolName: string
  readonly toolServer?: string | undefined
  /** The {@link scopeKeyText} of what the tool's `scopeKey(input)` made of the arguments that ran; the tool's name where it has none. */
  readonly scopeKey: string
}

/** A scope key as text: text is itself, and of a number or a boolean it is `=` and the JSON. No two values have the same. */
export function scopeKeyText(key: string | number | boolean): string {
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
