import type { ApprovalErrorCode, ApprovalScope } from '@countersign/core'

export type { ApprovalScope } from '@countersign/core'

/**
 * The application's own name for who is speaking (`context.subject`), never taken from a request body.
 * `null` where the application has no notion of users.
 */
export type Owner = string | null

/** Whether arguments may be edited: not at all, all of them, or only these top-level keys. */
export type ApprovalEdits = boolean | readonly string[]

/** What names one approval. Every key of a ledger starts with the owner. */
export interface ApprovalRef {
  readonly owner: Owner
  readonly threadId: string
  readonly approvalId: string
}

/** What a question says in words. */
export interface ShownTerms {
  readonly message?: string | undefined
  readonly display?: unknown
}

/** A question as it was asked. What runs after a yes is this record's call, whatever a history says. Plain JSON. */
export interface ApprovalRecord extends ApprovalRef {
  /** The run that asked; informational, never compared. */
  readonly runId: string
  readonly toolCallId: string
  readonly toolName: string
  /** The MCP server the tool belongs to, where it does. */
  readonly toolServer?: string | undefined
  /** RFC 8785 text of the arguments; its parse is what runs. */
  readonly arguments: string
  readonly scopes: readonly ApprovalScope[]
  readonly edits: ApprovalEdits
  /** Whether the tool was declared `idempotent`: only then may an interrupted call run again. */
  readonly idempotent: boolean
  /** The model's provider runs the call itself once it was told of the answer; it is never run here. */
  readonly providerExecuted?: boolean | undefined
  /** What the person was shown beside the arguments, where the tool itself asked while it ran. JSON. */
  readonly shown?: ShownTerms | undefined
  /** Milliseconds since the epoch. */
  readonly issuedAt: number
  /** Milliseconds since the epoch; from then on a yes is refused. */
  readonly expiresAt: number
  /** The token that went out with the question, so that asking again sends the same one. */
  readonly token: string
}

/** Who gave an answer and when: kept with it, and no part of what makes two answers the same. */
interface AnswerOrigin {
  /** Default `person`. `policy`: the application's. `server`: nobody answered, or nobody could any more. */
  readonly by?: 'person' | 'policy' | 'server' | undefined
  /** Milliseconds since the epoch. */
  readonly at?: number | undefined
}

/** A verified verdict. Approve, deny, cancel and expire are all settlements. A reason is kept up to {@link MAX_REASON_LENGTH}. */
export type LedgerAnswer = AnswerOrigin & Decision

type Decision =
  | {
      readonly decision: 'approve'
      readonly scope: ApprovalScope
      /** RFC 8785 text of the edited arguments, where the person edited them. */
      readonly arguments?: string | undefined
      readonly reason?: string | undefined
    }
  | { readonly decision: 'deny'; readonly reason?: string | undefined }
  | {
      readonly decision: 'cancel'
      readonly reason?: string | undefined
      /** Why the server closed the question, where it was no person's act. */
      readonly code?: ApprovalErrorCode | undefined
    }
  | { readonly decision: 'expire' }

/** What a tool made of an approved call, as its runner reports it. */
export type ToolOutcome =
  | { readonly type: 'result'; readonly content: string }
  | { readonly type: 'error'; readonly message: string; readonly code?: string | undefined }
  /**
   * Whoever runs the call has it: the client (a repeat hands it out again and the client runs it once), or the model's provider
   * (which is told again of the same answer until it has given a result).
   */
  | { readonly type: 'handed-out'; readonly arguments: string }
  /** It may or may not have run (an abort or a timeout after the start). The row becomes `interrupted`, not `done`. */
  | { readonly type: 'interrupted'; readonly message?: string | undefined }

/** How a settled question ended; a repeat of the same answer returns it. */
export type StoredOutcome =
  | Exclude<ToolOutcome, { type: 'interrupted' }>
  | { readonly type: 'denied'; readonly reason?: string | undefined }
  | {
      readonly type: 'cancelled'
      readonly reason?: string | undefined
      readonly code?: ApprovalErrorCode | undefined
    }
  /** Too large to keep, or dropped before its record: SHA-256 (base64url) and size of the outcome's JSON. */
  | {
      readonly type: 'unavailable'
      readonly of: 'result' | 'error' | 'handed-out'
      readonly hash: string
      readonly bytes: number
    }

/** Where a question stands. `issued` -> `claimed` -> `done`, or `interrupted` when its runner was lost. */
export type ApprovalState =
  | { readonly phase: 'issued' }
  | {
      readonly phase: 'claimed'
      readonly answer: LedgerAnswer
      readonly holder: string
      /** Milliseconds since the epoch; a claim not renewed by then is interrupted. */
      readonly leaseUntil: number
      /** See {@link GrantRequest}. */
      readonly revision: number
    }
  | {
      readonly phase: 'interrupted'
      readonly answer: LedgerAnswer
      readonly holder: string
      readonly revision: number
    }
  | {
      readonly phase: 'done'
      readonly answer: LedgerAnswer
      readonly outcome: StoredOutcome
      /** The outcome came after its lease was lost; the person may have been told that the call was interrupted. */
      readonly late: boolean
    }

export interface LedgerEntry {
  readonly record: ApprovalRecord
  readonly state: ApprovalState
}

/** `full`: no room without evicting a live record. `conflict`: this id was issued for something else. */
export type IssueResult =
  | { readonly status: 'issued' }
  | { readonly status: 'unchanged' }
  | { readonly status: 'conflict' }
  | { readonly status: 'full' }

export type ClaimResult =
  /** The answer is this caller's to carry out, and nobody else's. `revision` is for the {@link GrantRequest} it may lead to. */
  | { readonly status: 'claimed'; readonly revision: number }
  /** The same answer was carried out before. */
  | { readonly status: 'repeat'; readonly outcome: StoredOutcome; readonly late: boolean }
  /** The same answer is being carried out by another holder. See `claimAndWait`. */
  | { readonly status: 'in-progress' }
  /** The same answer was taken up and its runner lost: the call may or may not have run. */
  | { readonly status: 'interrupted' }
  /** Another answer was first. */
  | { readonly status: 'conflict'; readonly settled: LedgerAnswer['decision'] }
  | { readonly status: 'expired' }
  /** Not issued by this ledger, to another owner or thread, or no longer known. */
  | { readonly status: 'not-issued' }

export type RenewResult = { readonly status: 'renewed' } | { readonly status: 'lost' }

export type CompleteResult =
  /** `late`: recorded although the lease was lost before. */
  | { readonly status: 'recorded'; readonly late: boolean }
  /** There is an outcome already; nothing changed. */
  | { readonly status: 'already-recorded' }
  /** The claim is another holder's; nothing changed. */
  | { readonly status: 'fenced' }
  | { readonly status: 'not-issued' }

export type ReclaimResult =
  | { readonly status: 'claimed'; readonly answer: LedgerAnswer; readonly revision: number }
  /** Not interrupted, or the tool is not idempotent. */
  | { readonly status: 'refused' }
  | { readonly status: 'not-issued' }

/** What a grant covers. Its owner is never null: without a subject a session scope counts as `once`. */
export interface GrantKey {
  readonly owner: string
  readonly threadId: string
  readonly toolName: string
  readonly toolServer?: string | undefined
  /** What the tool's `scopeKey(input)` made of the arguments that ran; the tool's name where it has none. */
  readonly scopeKey: string
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

/** One line about one step of one approval. Owner and arguments are keyed hashes; a token is never in it. */
export interface AuditEntry {
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly event: 'issued' | 'claimed' | 'refused' | 'completed' | 'granted' | 'revoked'
  readonly ownerHash: string
  readonly threadId: string
  readonly approvalId?: string | undefined
  readonly toolCallId?: string | undefined
  readonly toolName?: string | undefined
  readonly argumentsHash?: string | undefined
  /** What a person may read of the arguments, as the tool's `redact` left them. */
  readonly view?: unknown
  readonly decision?: LedgerAnswer['decision'] | undefined
  readonly scope?: ApprovalScope | undefined
  readonly edited?: boolean | undefined
  /** Which door the answer came by. */
  readonly via?: string | undefined
  readonly code?: ApprovalErrorCode | undefined
  readonly outcome?: StoredOutcome['type'] | 'interrupted' | undefined
}

/**
 * Allows what it issued, once. A ledger never merely remembers: whatever it has forgotten (a restart, an eviction, a failover) is refused.
 *
 * Every operation is atomic and keyed owner-first. An operation that cannot reach its storage rejects; the engine then refuses
 * with `ledger-unavailable`. `describeLedger` of `@countersign/testing` is the suite an implementation must pass.
 */
export interface Ledger {
  /** Stable identity, bound into every token as `aud`: a token of another ledger is refused. */
  readonly id: string
  /** Whether an open approval survives a restart of this process. */
  readonly durable: boolean

  /** Records a question before it is sent. The same id with the same record is a no-op. Never evicts a live record. */
  issue(record: ApprovalRecord): Promise<IssueResult>

  /** What was issued and where it stands; a lapsed claim reads as `interrupted`. */
  lookup(ref: ApprovalRef): Promise<LedgerEntry | undefined>

  /** The thread's entries that are not `done`, oldest first: what may still be answered, is running or was interrupted. */
  unsettled(owner: Owner, threadId: string): Promise<readonly LedgerEntry[]>

  /**
   * Takes up an answer. An approval becomes `claimed` by `holder` for `leaseMs`; deny, cancel and expire are `done` in this step.
   * The same answer again (same decision, scope and arguments; `reason` is ignored) never succeeds twice. `holder` is new for
   * every attempt, as `randomId` makes it: it is what fences an attempt that was given up.
   */
  claim(ref: ApprovalRef, answer: LedgerAnswer, holder: string, leaseMs: number): Promise<ClaimResult>

  /** Extends the lease. A lapsed lease stays lost, also when nobody took the claim over. */
  renew(ref: ApprovalRef, holder: string, leaseMs: number): Promise<RenewResult>

  /** Records the outcome, by the holder of the claim only; up to {@link MAX_OUTCOME_BYTES}, beyond it hash and size. */
  complete(ref: ApprovalRef, holder: string, outcome: ToolOutcome): Promise<CompleteResult>

  /** Takes over an interrupted call of an idempotent tool, to run it again under the same idempotency key. */
  reclaim(ref: ApprovalRef, holder: string, leaseMs: number): Promise<ReclaimResult>

  /**
   * Resolves when the entry may have changed, or `signal` aborts; spurious wake-ups are fine. Optional: without it,
   * `claimAndWait` polls.
   */
  readonly changed?: ((ref: ApprovalRef, signal: AbortSignal) => Promise<void>) | undefined

  grant(request: GrantRequest): Promise<GrantResult>

  /**
   * The live grant with exactly this key. `use` takes one use of it and is called immediately before execution, so that a
   * revocation in between wins; it finds no grant that is not `approved`. `look` changes nothing.
   */
  findGrant(key: GrantKey, purpose: 'look' | 'use'): Promise<Grant | undefined>

  /** Removes the grants that match and voids those in flight for this owner. Resolves with how many were removed. */
  revoke(selector: GrantSelector): Promise<number>

  /** The live grants of an owner, of one thread where given, oldest first. */
  list(owner: string, threadId?: string): Promise<readonly Grant[]>

  /** Appends to the audit trail. */
  audit(entry: AuditEntry): Promise<void>

  /** The audit trail, oldest first, as far as this ledger keeps it. */
  auditTrail(): AsyncIterable<AuditEntry>
}

/** Outcomes whose JSON is larger are kept as hash and size. */
export const MAX_OUTCOME_BYTES = 256 * 1024

/** Longer reasons are cut, in characters. */
export const MAX_REASON_LENGTH = 4096

/** How long records outlive their expiry, for clocks that differ, in milliseconds. */
export const CLOCK_SKEW_MS = 60_000

/**
 * One key out of several parts, so that no two lists of parts share a key: each is preceded by its length.
 * `null` (no owner) differs from every string.
 */
export function ledgerKey(...parts: readonly (string | null | undefined)[]): string {
  return parts.map((part) => (part == null ? '-' : `${part.length}:${part}`)).join('')
}
