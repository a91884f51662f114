import { type ApprovalErrorCode, type ApprovalScope, CountersignError, type Preview } from '@countersign/core'
import { type Rule, withMethods } from '../encoding/check-options.js'
import type { OfferedMandates } from '../mandates/offer.js'
import type { Grant, GrantKey, GrantRequest, GrantResult, GrantSelector, MandateCall } from './grant.js'

export type { ApprovalScope } from '@countersign/core'

/**
 * The user's id as the application knows it (`context.subject`), never taken from a request body.
 * `null` if the application has no users.
 */
export type Owner = string | null

/** Whether the user may edit the arguments: not at all, all of them, or only these top-level keys. */
export type ApprovalEdits = boolean | readonly string[]

/** Identifies one approval request. Every key of a ledger starts with the owner. */
export interface ApprovalRef {
  readonly owner: Owner
  readonly threadId: string
  readonly approvalId: string
}

/** The texts of an approval request. */
export interface ShownTerms {
  readonly message?: string | undefined
  readonly display?: unknown
}

/** An approval request as it was issued. After approval this record's call runs, whatever a client's history claims. Plain JSON. */
export interface ApprovalRecord extends ApprovalRef {
  /** The run that requested approval; informational, never compared. */
  readonly runId: string
  readonly toolCallId: string
  readonly toolName: string
  /** The MCP server of the tool, if it has one. */
  readonly toolServer?: string | undefined
  /** The arguments as RFC 8785 text. An approved call runs with the arguments parsed from it. */
  readonly arguments: string
  readonly scopes: readonly ApprovalScope[]
  /** The digest of the tool as it was, if a session approval was offered: see {@link GrantRequest}. */
  readonly tool?: string | undefined
  readonly edits: ApprovalEdits
  /** Whether the tool was declared `idempotent`: only then may an interrupted call run again. */
  readonly idempotent: boolean
  /** The model's provider executes the call once it has received the answer; the call never runs here. */
  readonly providerExecuted?: boolean | undefined
  /** What the user was shown besides the arguments, if the tool itself sent the request while it ran. JSON. */
  readonly shown?: ShownTerms | undefined
  /** The standing approvals that it offered. */
  readonly mandates?: OfferedMandates | undefined
  /** The tool's preview, as the user was shown it. */
  readonly preview?: Preview | undefined
  /** If approval is requested again because the preview changed: the preview before, and the ids of the earlier requests. */
  readonly previous?: Preview | undefined
  readonly earlier?: readonly string[] | undefined
  /** Milliseconds since the epoch. */
  readonly issuedAt: number
  /** Milliseconds since the epoch; from then on a new answer is refused. */
  readonly expiresAt: number
  /** The token sent with the request. Sending the request again uses the same one. */
  readonly token: string
}

/** Who gave an answer and when. Stored with it, but not compared when an answer is repeated. */
interface AnswerOrigin {
  /** Default `person`. `policy`: the application's policy. `server`: nobody answered, or nobody could any more. */
  readonly by?: 'person' | 'policy' | 'server' | undefined
  /** Milliseconds since the epoch. */
  readonly at?: number | undefined
}

/** A verified verdict. Approve, deny, cancel and expire all settle a request. A reason is cut to {@link MAX_REASON_LENGTH}. */
export type LedgerAnswer = AnswerOrigin & Decision

type Decision =
  | {
      readonly decision: 'approve'
      readonly scope: ApprovalScope
      /** RFC 8785 text of the edited arguments, if the user edited them. */
      readonly arguments?: string | undefined
      /** The id of the mandate that was chosen. */
      readonly mandate?: string | undefined
      readonly reason?: string | undefined
      /**
       * The run whose request first carried the answer, according to the client. A client tool's call is handed out again only to a request
       * that repeats that same answer.
       */
      readonly sentIn?: string | undefined
    }
  | { readonly decision: 'deny'; readonly mandate?: string | undefined; readonly reason?: string | undefined }
  | {
      readonly decision: 'cancel'
      readonly reason?: string | undefined
      /** Why the server closed the request, if no user did. */
      readonly code?: ApprovalErrorCode | undefined
    }
  | { readonly decision: 'expire' }

/** What a tool made of an approved call, as reported by the code that ran it. */
export type ToolOutcome =
  | { readonly type: 'result'; readonly content: string }
  | { readonly type: 'error'; readonly message: string; readonly code?: string | undefined }
  /**
   * The call was handed to the client, which runs it once even if it is handed out again, or is left to the model's provider. The
   * provider does not know yet: the request that reports the approval to it claims the call again (`reclaim`) and stores its result.
   */
  | { readonly type: 'handed-out'; readonly arguments: string }
  /** It may or may not have run (it was aborted or timed out after the start). The row becomes `interrupted`, not `done`. */
  | { readonly type: 'interrupted'; readonly message?: string | undefined }
  /** Approved, but not started: the policy forbids it by now. */
  | { readonly type: 'denied'; readonly reason?: string | undefined }
  /** Approved, but not started: it expired, something it was bound to has changed, or its run was stopped. */
  | {
      readonly type: 'cancelled'
      readonly reason?: string | undefined
      readonly code?: ApprovalErrorCode | undefined
      /** The request that replaced it, because its preview had changed: that one has the call's outcome. */
      readonly next?: string | undefined
    }

/** How a settled request ended. Repeating the same answer returns it. */
export type StoredOutcome =
  | Exclude<ToolOutcome, { type: 'interrupted' }>
  /** Too large to keep, or dropped to make room: SHA-256 (base64url) and size in bytes of the outcome's JSON. */
  | {
      readonly type: 'unavailable'
      readonly of: Exclude<ToolOutcome['type'], 'interrupted'>
      readonly hash: string
      readonly bytes: number
    }

/**
 * The state of a request: `issued`, `claimed`, then `done`, or `interrupted` if its holder was lost. A provider's call that is `done`
 * as `handed-out` becomes `claimed` once more, when its approval is reported to the provider.
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
      /** The outcome arrived after the lease was lost; the user may have been told that the call was interrupted. */
      readonly late: boolean
    }

export interface LedgerEntry {
  readonly record: ApprovalRecord
  readonly state: ApprovalState
}

/** `full`: no room without evicting a live record. `conflict`: this id was issued for something else. */
export type IssueResult = { readonly status: 'issued' | 'unchanged' | 'conflict' | 'full' }

export type ClaimResult =
  /** Only this caller may carry out the answer. `revision` is for the {@link GrantRequest} that may follow. */
  | { readonly status: 'claimed'; readonly revision: number }
  /** The same answer was carried out before. */
  | { readonly status: 'repeat'; readonly outcome: StoredOutcome; readonly late: boolean }
  /** Another holder is carrying out the same answer. See `claimAndWait`. */
  | { readonly status: 'in-progress' }
  /** The same answer was claimed, and its holder lost: the call may or may not have run. */
  | { readonly status: 'interrupted' }
  /** Another answer came first. */
  | { readonly status: 'conflict'; readonly settled: LedgerAnswer['decision'] }
  | { readonly status: 'expired' }
  /** Not issued by this ledger, issued to another owner or thread, or no longer known. */
  | { readonly status: 'not-issued' }
  /** Nothing changed: there is no room for the edited arguments. Any other answer fits. */
  | { readonly status: 'full' }

export type RenewResult = { readonly status: 'renewed' } | { readonly status: 'lost' }

export type CompleteResult =
  /** `late`: recorded although the lease had been lost. */
  | { readonly status: 'recorded'; readonly late: boolean }
  /** An outcome is already recorded; nothing changed. */
  | { readonly status: 'already-recorded' }
  /** Another holder has the claim; nothing changed. */
  | { readonly status: 'fenced' }
  | { readonly status: 'not-issued' }

export type ReclaimResult =
  | { readonly status: 'claimed'; readonly answer: LedgerAnswer; readonly revision: number }
  /** The call can't be taken over: it is neither an interrupted call of an idempotent tool nor one that waits for its provider. */
  | { readonly status: 'refused' }
  | { readonly status: 'not-issued' }

/**
 * One audit line: one step of one approval. Owner and arguments are keyed hashes, and tokens are never included. A call that needed approval
 * has a line for its request (`issued`), each refused answer (`refused`), the decision (`claimed`), the execution (`started`; absent if
 * nothing runs here) and the outcome (`completed`; absent if the process was lost). A call that a session grant or a mandate allows, or
 * a standing denial refuses, has the last three, with `via: 'grant'` and no `approvalId`.
 */
export interface AuditEntry {
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly event:
    | 'issued'
    | 'claimed'
    | 'refused'
    | 'started'
    | 'completed'
    | 'granted'
    | 'revoked'
    | 'shadow'
  readonly ownerHash: string
  readonly threadId: string
  readonly approvalId?: string | undefined
  readonly toolCallId?: string | undefined
  readonly toolName?: string | undefined
  readonly argumentsHash?: string | undefined
  /** The arguments as `redact` left them for the user to read. Absent if `redact` changes nothing or is not set. */
  readonly view?: unknown
  /** With `issued`: the keyed hash of everything the user was shown except the token, as RFC 8785 JSON. With `mandate`: that of its label. */
  readonly shownHash?: string | undefined
  readonly decision?: LedgerAnswer['decision'] | undefined
  readonly scope?: ApprovalScope | undefined
  readonly edited?: boolean | undefined
  /** The mandate that was chosen, or that let the call through or refused it. */
  readonly mandate?: { readonly id: string } | undefined
  /**
   * How the answer arrived; `server` if the request was closed without the user, `grant` if a session grant or a mandate allowed the call, or
   * a standing denial refused it.
   */
  readonly via?: string | undefined
  readonly code?: ApprovalErrorCode | undefined
  readonly outcome?: StoredOutcome['type'] | 'interrupted' | undefined
  /** With `shadow`: what was decided about a new call, and what the shadow policy would have decided. */
  readonly policy?:
    | {
        readonly decided: 'allow' | 'ask' | 'block'
        readonly shadow: 'allow' | 'ask' | 'block'
        readonly reason?: string | undefined
      }
    | undefined
}

/**
 * Allows what it issued, once. Whatever a ledger no longer knows (after a restart, an eviction or a failover) is refused.
 *
 * Every operation is atomic and keyed by owner first. An operation that can't reach its storage rejects, and the engine refuses
 * with `ledger-unavailable`. `describeLedger` of `@countersign/testing/suites` is the suite an implementation must pass.
 */
export interface Ledger {
  /** Stable identity, bound into every token as `aud`: tokens of another ledger are refused. */
  readonly id: string
  /** Whether an open approval request survives a restart of this process. */
  readonly durable: boolean

  /** Records a request before it is sent. The same id with the same record is a no-op. Never evicts a live record. */
  issue(record: ApprovalRecord): Promise<IssueResult>

  /** The request and its state. A claim whose lease has expired reads as `interrupted`. */
  lookup(ref: ApprovalRef): Promise<LedgerEntry | undefined>

  /**
   * The thread's entries that are not `done`, oldest first: open, running or interrupted. A run reads all of them at once, so an answer may
   * lack its reason, and its edited arguments may be an empty string: `lookup` has both.
   */
  unsettled(owner: Owner, threadId: string): Promise<readonly LedgerEntry[]>

  /**
   * For each call, the approval that was issued last, if it is `done`; in any order. A run asks once for all calls of its history, so
   * answers may be shortened as in {@link unsettled}. Optional: without it, what a client claims about a settled call is checked only if
   * the call still names its approval.
   */
  readonly settled?:
    | ((owner: Owner, threadId: string, toolCallIds: readonly string[]) => Promise<readonly LedgerEntry[]>)
    | undefined

  /**
   * Claims an answer. An approval becomes `claimed` by `holder` for `leaseMs`; deny, cancel and expire are `done` in this step.
   * Repeating the answer (same decision, scope and arguments; `reason` is ignored) never succeeds twice. Every attempt needs a new
   * `holder`, as made by `randomId`: it fences off attempts that were given up.
   */
  claim(ref: ApprovalRef, answer: LedgerAnswer, holder: string, leaseMs: number): Promise<ClaimResult>

  /** Extends the lease. A lease that has expired stays lost, even if nobody took the claim over. */
  renew(ref: ApprovalRef, holder: string, leaseMs: number): Promise<RenewResult>

  /**
   * Records the outcome; only the holder of the claim may. Beyond {@link MAX_OUTCOME_BYTES} only hash and size are kept, except of `handed-out`. That, and
   * `cancelled` with `next`, are refused (`fenced`) once the lease was lost: the call has not started, and others may have been told that it was interrupted.
   */
  complete(ref: ApprovalRef, holder: string, outcome: ToolOutcome): Promise<CompleteResult>

  /**
   * Takes over an interrupted call of an idempotent tool, to run it again under the same idempotency key; or a call of the model's
   * provider (`providerExecuted`) that is done as `handed-out`, to report the approval to the provider.
   */
  reclaim(ref: ApprovalRef, holder: string, leaseMs: number): Promise<ReclaimResult>

  /**
   * Resolves when the entry may have changed or `signal` aborts; spurious wake-ups are fine. Optional: without it,
   * `claimAndWait` polls.
   */
  readonly changed?: ((ref: ApprovalRef, signal: AbortSignal) => Promise<void>) | undefined

  grant(request: GrantRequest): Promise<GrantResult>

  /**
   * The live grant with exactly this key. `use` consumes one use and is called immediately before execution, so that a
   * revocation in between wins; it finds only `approved` grants. `look` changes nothing.
   */
  findGrant(key: GrantKey, purpose: 'look' | 'use'): Promise<Grant | undefined>

  /**
   * For a call of a tool that offers mandates: the denial that refuses it, or else a mandate that lets it through. `use` counts the use and
   * debits the budget in the same step, once per `callKey`, and is called immediately before execution. Optional, with `returnUse`:
   * without them, no mandates are offered.
   */
  readonly findMandate?:
    | ((call: MandateCall, purpose: 'look' | 'use') => Promise<Grant | undefined>)
    | undefined

  /** Gives back what a call has used of a mandate, because it has not started. Does nothing if there is nothing to give back. */
  readonly returnUse?: ((call: Omit<GrantKey, 'scopeKey'>, callKey: string) => Promise<void>) | undefined

  /** Removes the matching grants and voids those of this owner in flight. Resolves with the number removed. */
  revoke(selector: GrantSelector): Promise<number>

  /** The owner's live grants, in one thread or in all, oldest first. */
  list(owner: string, threadId?: string): Promise<readonly Grant[]>

  /** Appends to the audit trail. */
  audit(entry: AuditEntry): Promise<void>

  /** The audit trail, oldest first, as far as it is kept. */
  auditTrail(): AsyncIterable<AuditEntry>
}

/** What an option that is a ledger must be. */
export const ledgerRule: Rule = {
  ...withMethods('', 'issue', 'lookup', 'unsettled', 'claim', 'renew', 'complete'),
  expected: 'a ledger (fileLedger() gives a promise of one: await it)',
}

/** Of results whose JSON is larger, only hash and size are kept. */
export const MAX_OUTCOME_BYTES = 256 * 1024

/** Longer reasons are cut, in characters. */
export const MAX_REASON_LENGTH = 4096

/** The largest time of a `Date`: `expiresAt` of a record that never expires. */
export const NEVER = 8_640_000_000_000_000

/** How long the record of a request that never expires is kept after its answer, in milliseconds: seven days. */
export const ANSWERED_KEPT_MS = 7 * 24 * 60 * 60 * 1000

/** How long the record of an approved or denied call is kept after the answer at least, in milliseconds: a day. */
export const OUTCOME_KEPT_MS = 24 * 60 * 60 * 1000

/** How long records are kept beyond their expiry, because clocks differ, in milliseconds. */
export const CLOCK_SKEW_MS = 60_000

/**
 * Joins parts into one key. Different lists of parts never share a key, because each part is preceded by its length.
 * `null` (no owner) differs from every string.
 *
 * @throws CountersignError `invalid-argument` for a part that is not a string: its length and its text would not identify it.
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
