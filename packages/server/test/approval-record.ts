import type { ApprovalRecord, Ledger } from '@countersign/server'
import { expect } from 'vitest'

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

/**
 * A mandate is about to be used, and the first standing denial of its tool is stored `between` the read that decides and the write: the denial
 * is found instead, and nothing is used.
 */
export async function usesUnlessDenied(
  using: Ledger,
  denying: Ledger,
  between: (work: () => Promise<unknown>) => void,
): Promise<void> {
  const tool = { owner: 'alice', threadId: 'thread', toolName: 'pay' }
  const terms = { label: 'Pay', where: [], tool: 'v1', approvalId: 'a1' }
  await denying.grant({ ...tool, scopeKey: 'pay', approved: true, terms, uses: 5 })
  between(() => denying.grant({ ...tool, scopeKey: 'never', approved: false, terms }))
  const call = { ...tool, tool: 'v1', input: {}, callKey: 'key', since: 0 }
  expect((await using.findMandate?.(call, 'use'))?.approved).toEqual(false)
  expect((await using.list('alice')).map(({ usesLeft }) => usesLeft)).toEqual([5, undefined])
}
