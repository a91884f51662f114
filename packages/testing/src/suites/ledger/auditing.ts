import { approve, type Expect, LEASE, type Spec, statusOf } from './bench.js'

export function auditing(spec: Spec, expect: Expect): void {
  spec('the audit trail keeps what was appended, in order', async ({ ledger }) => {
    const line = { at: 1, event: 'issued', ownerHash: 'hash', threadId: 'thread' } as const
    await ledger.audit(line)
    await ledger.audit({ ...line, at: 2, event: 'claimed', decision: 'approve', scope: 'once' })
    const read = []
    for await (const entry of ledger.auditTrail()) read.push([entry.at, entry.event])
    expect(read).toEqual([
      [1, 'issued'],
      [2, 'claimed'],
    ])
  })

  spec('where changes are announced, an outcome wakes who waits for it, and an abort does', async (bench) => {
    const { ledger, record } = bench
    if (ledger.changed === undefined) return
    await ledger.issue(record)
    await ledger.claim(record, approve, 'h1', LEASE)
    const abort = new AbortController()
    const woken = ledger.changed(record, abort.signal)
    await ledger.complete(record, 'h1', { type: 'result', content: 'done' })
    await woken
    const aborted = ledger.changed(record, abort.signal)
    abort.abort()
    await aborted
    expect(statusOf(await ledger.claim(record, approve, 'h2', LEASE))).toEqual('repeat')
  })
}
