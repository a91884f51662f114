import type { ApprovalRecord, ApprovalRef, ClaimResult, Ledger, LedgerAnswer } from '@countersign/server'
import type { SuiteRunner } from '../runner.js'

export interface LedgerUnderTest {
  readonly ledger: Ledger
  /** The same storage as opened by another process, if the ledger is shared. */
  readonly another?: Ledger | undefined
  close?(): Promise<void> | void
}

/** Creates an empty ledger that uses the clock `now`, in milliseconds since the epoch. */
export type CreateLedger = (options: {
  readonly now: () => number
}) => Promise<LedgerUnderTest> | LedgerUnderTest

export type Spec = (sentence: string, run: (bench: Bench) => Promise<void>) => void
export type Expect = SuiteRunner['expect']

export const LEASE = 30_000
export const HOUR = 60 * 60 * 1000
export const DAY = 24 * HOUR

export const approve = { decision: 'approve', scope: 'once' } as const satisfies LedgerAnswer
export const deny = { decision: 'deny' } as const satisfies LedgerAnswer
export const cancel = { decision: 'cancel' } as const satisfies LedgerAnswer
export const expire = { decision: 'expire' } as const satisfies LedgerAnswer
export const edit = (text: string): LedgerAnswer => ({ ...approve, arguments: text })
export const recorded = { status: 'recorded', late: false } as const

export interface Bench {
  readonly ledger: Ledger
  /** The ledger and, if it is shared, the same one as opened by another process. */
  readonly others: readonly Ledger[]
  /** Alice's approval request in `thread`, not issued yet, with an hour to answer. */
  readonly record: ApprovalRecord
  advance(ms: number): void
  /** Issues another approval request of Alice's in `thread`, at the current time. */
  issueAnother(): Promise<ApprovalRecord>
  run(ref: ApprovalRef, answer: LedgerAnswer, holder: string, content: string): Promise<void>
  issueAndRun(answer: LedgerAnswer, content: string): Promise<void>
  close(): Promise<void>
}

export async function openBench(create: CreateLedger): Promise<Bench> {
  let now = Date.UTC(2026, 0, 1)
  let issued = 1
  const made = await create({ now: () => now })
  const { ledger, another } = made
  const requestNow = (approvalId: string): ApprovalRecord => ({
    owner: 'alice',
    threadId: 'thread',
    approvalId,
    runId: 'run',
    toolCallId: 'call_1',
    toolName: 'remove',
    arguments: '{"path":"a"}',
    scopes: ['once', 'session'],
    edits: true,
    idempotent: false,
    issuedAt: now,
    expiresAt: now + HOUR,
    token: 'cs1.k.p.m',
  })
  const record = requestNow('approval_1')
  const run: Bench['run'] = async (ref, answer, holder, content) => {
    await ledger.claim(ref, answer, holder, LEASE)
    await ledger.complete(ref, holder, { type: 'result', content })
  }
  return {
    ledger,
    others: another === undefined ? [ledger] : [ledger, another],
    record,
    advance: (ms) => {
      now += ms
    },
    issueAnother: async () => {
      const next = requestNow(`approval_${++issued}`)
      await ledger.issue(next)
      return next
    },
    run,
    issueAndRun: async (answer, content) => {
      await ledger.issue(record)
      await run(record, answer, 'h1', content)
    },
    close: async () => made.close?.(),
  }
}

export function atOnce<Result>(times: number, act: (index: number) => Promise<Result> | undefined) {
  return Promise.all(Array.from({ length: times }, (_, index) => act(index)))
}

export function statusOf(result: ClaimResult): ClaimResult['status'] {
  return result.status
}

export function count(results: readonly ({ readonly status: string } | undefined)[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const result of results) {
    const status = result?.status ?? 'nothing'
    counts[status] = (counts[status] ?? 0) + 1
  }
  return counts
}
