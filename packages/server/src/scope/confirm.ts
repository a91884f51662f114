import type { ApprovalOption } from '@countersign/core'
import type { RunContext } from './run-context.js'

/** What the person is asked: the value of `CUSTOM approval-requested`. */
export interface ApprovalRequest {
  readonly toolCallId: string
  readonly toolName: string
  /** The model's arguments, exact. */
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
    readonly token: string
  }
}

/** An answer as `confirm` gets it. Its token is verified, its scope was offered, its edits are allowed and fit the schema. */
export interface ConfirmedVerdict {
  readonly approvalId: string
  readonly toolCallId: string
  readonly toolName: string
  readonly decision: 'approve' | 'deny' | 'cancel'
  readonly scope?: 'once' | 'session' | undefined
  readonly reason?: string | undefined
  /** The answer's payload as it was sent, with whatever the page added to it: the place for a signature or a one-time code. */
  readonly payload: unknown
  /** The arguments that would run: edited where the person edited them. Those of the request for a no. JSON. */
  readonly arguments: unknown
  /** The verified token of the request: a proof over it is a proof of exactly this question. */
  readonly token: string
  /**
   * How the answer came: into an open run, in `resume`, as a decision in the history, or as the result of `client.requestApproval`.
   */
  readonly via: 'live' | 'resume' | 'history' | 'projection'
}

/** Who answers, and what they were asked. */
export interface ConfirmDetails {
  /**
   * The context of the request that brought the answer. For a live answer that is the `context` of `answerResponse`, of the socket's
   * frame, or of `answers.put(entry, context)`; `{}` where none was given. Never that of the run that asked.
   */
  readonly context: RunContext
  /** The request, as the person gets it. */
  readonly request: ApprovalRequest
}

/** Asks for more proof than the session gives. */
export type Confirm = (verdict: ConfirmedVerdict, details: ConfirmDetails) => boolean | Promise<boolean>
