import type { ApprovalRecord, Ledger } from '@countersign/server'
import type { SuiteRunner } from './runner.js'

/** A process that runs {@link workThrough} on the ledger under test. */
export interface LedgerWorker {
  /** Resolves when it has finished or was killed. */
  readonly ended: Promise<void>
  /** Kills it immediately, like SIGKILL. */
  kill(): void
}

export interface SharedLedgerUnderTest {
  readonly ledger: Ledger
  /** Starts another process that works through the approvals of `ids` in that order. */
  start(ids: readonly string[]): LedgerWorker
  /** The ids for which a tool ran, in any order, from all processes. A process must record an id before anything else it does then. */
  ran(): Promise<readonly string[]>
  close(): Promise<void> | void
}

export interface SharedLedgerOptions {
  /** Approvals in each test. Default 300. */
  readonly approvals?: number | undefined
  /** How often two processes are killed. Default 5. */
  readonly kills?: number | undefined
}

const LEASE_MS = 500
const approve = { decision: 'approve', scope: 'once' } as const

/** The approval request with this id, identical in every process. */
function recordOf(approvalId: string): ApprovalRecord {
  return {
    ...{ owner: 'alice', threadId: 'thread', approvalId, runId: 'run', toolCallId: approvalId },
    ...{ toolName: 'remove', arguments: '{}', scopes: ['once'], edits: false, idempotent: false },
    ...{ token: 'cs1.k.p.m', issuedAt: 0, expiresAt: Number.MAX_SAFE_INTEGER / 2 },
  }
}

/** The work of a worker: approves each request and, if it gets the claim, runs the tool and records the outcome. */
export async function workThrough(
  ledger: Ledger,
  ids: readonly string[],
  run: (id: string) => void,
): Promise<void> {
  for (const [index, id] of ids.entries()) {
    const holder = `${globalThis.crypto.randomUUID()}-${index}`
    const claim = await ledger.claim(recordOf(id), approve, holder, LEASE_MS)
    if (claim.status !== 'claimed') continue
    run(id)
    await ledger.complete(recordOf(id), holder, { type: 'result', content: id })
  }
}

/**
 * The tests for a ledger that several processes share, some of which are killed. Each `create` returns a separate ledger.
 */
export function describeSharedLedger(
  name: string,
  create: () => Promise<SharedLedgerUnderTest>,
  { test, expect }: SuiteRunner,
  { approvals = 300, kills = 5 }: SharedLedgerOptions = {},
): void {
  const spec = (sentence: string, run: (bench: SharedLedgerUnderTest, ids: string[]) => Promise<void>) =>
    test(`${sentence} (${name})`, async () => {
      const bench = await create()
      try {
        const ids = Array.from({ length: approvals }, (_, index) => `approval_${index}`)
        for (const id of ids) await bench.ledger.issue(recordOf(id))
        await run(bench, ids)
      } finally {
        await bench.close()
      }
    })

  spec('two processes that claim the same approvals at once run each exactly once', async (bench, ids) => {
    const workers = [bench.start(ids), bench.start(ids)]
    await Promise.all(workers.map(({ ended }) => ended))
    expect([...(await bench.ran())].sort()).toEqual([...ids].sort())
    expect(await phases(bench.ledger, ids)).toEqual({ done: ids.length })
  })

  spec('processes killed in the middle double nothing and lose nothing', async (bench, ids) => {
    for (let round = 0; round < kills; round++) {
      const workers = [bench.start(shuffled(ids, round)), bench.start(shuffled(ids, round + 100))]
      const wanted = Math.floor(((round + 1) * ids.length) / (kills + 1))
      while ((await bench.ran()).length < wanted) await pause(1)
      for (const worker of workers) worker.kill()
      await Promise.all(workers.map(({ ended }) => ended))
    }
    await Promise.all([bench.start(ids), bench.start([...ids].reverse())].map(({ ended }) => ended))
    await pause(LEASE_MS)
    const ran = await bench.ran()
    const counted = await phases(bench.ledger, ids)
    expect({ doubled: ran.length - new Set(ran).size }).toEqual({ doubled: 0 })
    // A claim whose process was killed is interrupted, whether or not its tool ran; every other call ran and is done.
    expect((counted.done ?? 0) + (counted.interrupted ?? 0)).toEqual(ids.length)
    expect((counted.done ?? 0) >= ids.length - 2 * kills && ran.length >= (counted.done ?? 0)).toEqual(true)
    const again = await Promise.all(
      ids.map((id) => bench.ledger.claim(recordOf(id), approve, 'late', LEASE_MS)),
    )
    expect(again.filter(({ status }) => status === 'claimed')).toEqual([])
  })
}

async function phases(ledger: Ledger, ids: readonly string[]): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const id of ids) {
    const phase = (await ledger.lookup(recordOf(id)))?.state.phase ?? 'lost'
    counts[phase] = (counts[phase] ?? 0) + 1
  }
  return counts
}

/** Deterministic for a seed. */
function shuffled(ids: readonly string[], seed: number): string[] {
  let state = seed + 1
  const next = () => {
    state = (state * 48271) % 2147483647
    return state
  }
  return ids
    .map((id) => ({ id, at: next() }))
    .sort((one, other) => one.at - other.at)
    .map(({ id }) => id)
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
