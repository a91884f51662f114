/**
 * Every code of a Countersign error. Codes are stable: an application may switch on them. Transport and protocol: `http-status` to
 * `not-loaded`. The server ended the run with RUN_ERROR: `run-error`. Client: `invalid-option` to `queue-full`. Persistence:
 * `persistence-*`. Server: `invalid-request` to `reader-too-slow`. Approvals: the codes of {@link ApprovalErrorCode}.
 */
export type ErrorCode =
  | 'http-status'
  | 'not-an-event-stream'
  | 'connection-failed'
  | 'malformed-event'
  | 'event-too-large'
  | 'truncated-stream'
  | 'protocol-violation'
  | 'empty-response'
  | 'not-loaded'
  | 'run-error'
  | 'invalid-option'
  | 'invalid-argument'
  | 'disposed'
  | 'too-many-continuations'
  | 'tool-failed'
  | 'pending-approvals'
  | 'chat-busy'
  | 'queue-full'
  | 'persistence-corrupt'
  | 'persistence-full'
  | 'persistence-unavailable'
  | 'invalid-request'
  | 'request-too-large'
  | 'too-many-requests'
  | 'too-many-runs'
  | 'invalid-tool'
  | 'tool-not-found'
  | 'toolkit-required'
  | 'approval-required'
  | 'model-failed'
  | 'model-timeout'
  | 'invalid-output'
  | 'run-open'
  | 'run-id-used'
  | 'run-timeout'
  | 'shutting-down'
  | 'thread-busy'
  | 'thread-full'
  | 'thread-unknown'
  | 'unreconciled-history'
  | 'reader-too-slow'
  | ApprovalErrorCode

/** Why a server refuses an answer to an approval request, or why the request can no longer be answered. */
export const refusalCodes = [
  'approval-malformed',
  'approval-edit-invalid',
  'approval-mandate-refused',
  'approval-not-found',
  'approval-not-yours',
  'approval-tampered',
  'approval-expired',
  'approval-stale',
  'approval-changed',
  'approval-conflict',
  'approval-interrupted',
  'ledger-unavailable',
  'call-running',
] as const

/** The same, plus `request-refused`: the whole request was refused before the answer was read. */
export type ApprovalErrorCode = (typeof refusalCodes)[number] | 'request-refused'

const mark = Symbol.for('countersign.error')

/**
 * The only error class of Countersign. `code` identifies the error, `message` explains it and how to fix it,
 * and `data` holds the details (an HTTP status, the offending text, an approval id).
 */
export class CountersignError extends Error {
  override readonly name = 'CountersignError'
  readonly code: ErrorCode
  readonly data: Readonly<Record<string, unknown>>

  constructor(
    code: ErrorCode,
    message: string,
    data: Readonly<Record<string, unknown>> = {},
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.data = data
    Object.defineProperty(this, mark, { value: true })
  }
}

/** Whether `value` is a {@link CountersignError}, even one created by a second copy of this package. Never throws. */
export function isCountersignError(value: unknown): value is CountersignError {
  try {
    return typeof value === 'object' && value !== null && mark in value
  } catch {
    // A proxy may throw on any access.
    return false
  }
}
