import type { ApprovalOption, OfferedMandate, Preview } from '@countersign/core'
import type { RunContext } from './run-context.js'

/** An approval request: the value of `CUSTOM approval-requested`. */
export interface ApprovalRequest {
  readonly toolCallId: string
  readonly toolName: string
  /** The model's exact arguments. */
  readonly input: unknown
  readonly approval: {
    readonly id: string
    readonly needsApproval: true
    readonly options: readonly ApprovalOption[]
    readonly allowEdits?: true | readonly string[]
    readonly message?: string
    /** ISO 8601. */
    readonly expiresAt?: string
    readonly display?: unknown
    readonly mandates?: readonly OfferedMandate[]
    /** What the call would do. */
    readonly preview?: Preview
    /** The preview of the request before, if approval is requested again because it changed. */
    readonly previous?: Preview
    readonly token: string
  }
}

/** An answer for `confirm`: its token is verified, its scope was offered, its edits are allowed and valid for the schema. */
export interface ConfirmedVerdict {
  readonly approvalId: string
  readonly toolCallId: string
  readonly toolName: string
  readonly decision: 'approve' | 'deny' | 'cancel'
  readonly scope?: 'once' | 'session' | undefined
  /** The id of the offered mandate that the answer chooses: it approves or denies further calls. */
  readonly mandate?: string | undefined
  readonly reason?: string | undefined
  /** The answer's payload as sent, with anything the page added: the place for a signature or a one-time code. */
  readonly payload: unknown
  /** The arguments that would run, with the user's edits. For a denial, those of the request. JSON. */
  readonly arguments: unknown
  /** The verified token of the request: a proof that covers it is bound to exactly this request. */
  readonly token: string
  /** How the answer arrived: into an open run, in `resume`, as a decision in the history, or as the result of `client.requestApproval`. */
  readonly via: 'live' | 'resume' | 'history' | 'projection'
}

/** Who answers, and the request they answer. */
export interface ConfirmDetails {
  /**
   * The context of the request that brought the answer. For a live answer, the `context` of `answerResponse`, of the socket's
   * frame, or of `answers.put(entry, context)`; `{}` if none was given. Never the context of the run that requested approval.
   */
  readonly context: RunContext
  /** The request, as the user receives it. */
  readonly request: ApprovalRequest
}

/** Requires more proof than the session provides. */
export type Confirm = (verdict: ConfirmedVerdict, details: ConfirmDetails) => boolean | Promise<boolean>
