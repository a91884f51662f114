import { type ApprovalErrorCode, type ApprovalScope, CountersignError } from '@countersign/core'
import type { Grant, GrantKey, GrantRequest, GrantResult, GrantSelector } from './grant.js'

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
      /**
       * The run whose request first took the answer along, as its client says: a client tool is handed out again to whoever sends that same
       * answer again, and to nobody else.
       */
      readonly sentIn?: string | undefined
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
   * Whoever runs the call has it: the client (a repeat hands it out again and the client runs it once), or the model's provider, which is
   * not told yet: the request that tells it takes the call over (`reclaim`) and ends it with the provider's result.
   */
  | { readonly type: 'handed-out'; readonly arguments: string }
  /** It may or may not have run (an abort or a timeout after the start). The row becomes `interrupted`, not `done`. */
  | { readonly type: 'interrupted'; readonly message?: string | undefined }
  /** It was approved and has not started: the policy forbids it by now. */
  | { readonly type: 'denied'; readonly reason?: string | undefined }
  /** It was approved and has not started: its time was over, what it was bound to has changed, or its run was stopped. */
  | {
      readonly type: 'cancelled'
      readonly reason?: string | undefined
      readonly code?: ApprovalErrorCode | undefined
    }

/** How a settled question ended; a repeat of the same answer returns it. */
export type StoredOutcome =
  | Exclude<ToolOutcome, { type: 'interrupted' }>
  /** Too large to keep, or dropped before its record: SHA-256 (base64url) and size of the outcome's JSON. */
  | {
      readonly type: 'unavailable'
      readonly of: Exclude<ToolOutcome['type'], 'interrupted'>
      readonly hash: string
      readonly bytes: number
    }

/**
 * Where a question stands. `issued` -> `claimed` -> `done`, or `interrupted` when its runner was lost. A provider's call that is `done` as
 * `handed-out` becomes `claimed` once more, when its provider is told.
 */
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
  /** It is not to be taken over: it is neither an interrupted call of an idempotent tool nor one that waits for its provider. */
  | { readonly status: 'refused' }
  | { readonly status: 'not-issued' }

/**
 * One line about one step of one approval. Owner and arguments are keyed hashes; a token is never in it. A call that a person was asked
 * about has a line for its proposal (`issued`), for each answer that was not taken (`refused`), for the decision (`claimed`), for the
 * execution (`started`; none where nothing runs here) and for the outcome (`completed`; none where the process was lost). A call that a
 * standing session approval lets run has the last three, with `via: 'grant'` and no `approvalId`.
 */
export interface AuditEntry {
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly event: 'issued' | 'claimed' | 'refused' | 'started' | 'completed' | 'granted' | 'revoked'
  readonly ownerHash: string
  readonly threadId: string
  readonly approvalId?: string | undefined
  readonly toolCallId?: string | undefined
  readonly toolName?: string | undefined
  readonly argumentsHash?: string | undefined
  /** What a person may read of the arguments, as `redact` left them; absent where it leaves them all, or there is none. */
  readonly view?: unknown
  /** With `issued`: the keyed hash of all that the person was shown, the token apart, as RFC 8785 JSON. */
  readonly shownHash?: string | undefined
  readonly decision?: LedgerAnswer['decision'] | undefined
  readonly scope?: ApprovalScope | undefined
  readonly edited?: boolean | undefined
  /** Which door the answer came by; `server` where it was closed without the person, `grant` where a session approval stood. */
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

  /**
   * The thread's entries that are not `done`, oldest first: what may still be answered, is running or was interrupted. A run asks for all of
   * them at once, so an answer may come without its reason, and with empty text for the arguments where they were edited: `lookup` has them.
   */
  unsettled(owner: Owner, threadId: string): Promise<readonly LedgerEntry[]>

  /**
   * Of each of these calls the approval that was issued last, where it is `done`; in any order. A run asks once, for all calls of its history,
   * so answers may come as those of {@link unsettled}.
   * Optional: without it, what a client says of a settled call is checked only where the call still names its approval.
   */
  readonly settled?:
    | ((owner: Owner, threadId: string, toolCallIds: readonly string[]) => Promise<readonly LedgerEntry[]>)
    | undefined

  /**
   * Takes up an answer. An approval becomes `claimed` by `holder` for `leaseMs`; deny, cancel and expire are `done` in this step.
   * The same answer again (same decision, scope and arguments; `reason` is ignored) never succeeds twice. `holder` is new for
   * every attempt, as `randomId` makes it: it is what fences an attempt that was given up.
   */
  claim(ref: ApprovalRef, answer: LedgerAnswer, holder: string, leaseMs: number): Promise<ClaimResult>

  /** Extends the lease. A lapsed lease stays lost, also when nobody took the claim over. */
  renew(ref: ApprovalRef, holder: string, leaseMs: number): Promise<RenewResult>

  /**
   * Records the outcome, by the holder of the claim only; up to {@link MAX_OUTCOME_BYTES}, beyond it hash and size. `handed-out` is refused
   * (`fenced`) once the lease was lost: the call has not started, and others may have been told that it was interrupted.
   */
  complete(ref: ApprovalRef, holder: string, outcome: ToolOutcome): Promise<CompleteResult>

  /**
   * Takes over an interrupted call of an idempotent tool, to run it again under the same idempotency key; or a call of the model's
   * provider (`providerExecuted`) that is done as `handed-out`, to tell the provider.
   */
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

/** The end of time for a `Date`: `expiresAt` of a record that never expires. */
export const NEVER = 8_640_000_000_000_000

/** How long the record of a question that never expires is kept after its answer, in milliseconds: seven days. */
export const ANSWERED_KEPT_MS = 7 * 24 * 60 * 60 * 1000

/** How long records outlive their expiry, for clocks that differ, in milliseconds. */
export const CLOCK_SKEW_MS = 60_000

/**
 * One key out of several parts, so that no two lists of parts share a key: each is preceded by its length.
 * `null` (no owner) differs from every string.
 *
 * @throws CountersignError `invalid-argument` for a part that is no text: its length and its words say nothing of what it holds.
 */
export function ledgerKey(...parts: readonly (string | null | undefined)[]): string {
  return parts
    .map((part) => {
      if (part == null) return '-'
      if (typeof part === 'string') return `${part.length}:${part}`
      throw new CountersignError('invalid-argument', `A key of the ledger must be text, not ${typeof part}.`)
    })
    .join('')
}
