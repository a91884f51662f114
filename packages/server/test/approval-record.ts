import type { ApprovalRecord } from '@countersign/server'

export const HOUR = 60 * 60 * 1000

/** An approval that a ledger can issue. */
export function record(approvalId: string, more: Partial<ApprovalRecord> = {}): ApprovalRecord {
  return {
    ...{ owner: 'alice', threadId: 'thread', approvalId, runId: 'run', toolCallId: 'call' },
    ...{ toolName: 'remove', arguments: '{}', scopes: ['once'], edits: true, idempotent: false },
    ...{ token: 'cs1.k.p.m', issuedAt: 0, expiresAt: Date.now() + HOUR },
    ...more,
  }
}
