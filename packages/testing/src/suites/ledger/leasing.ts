import {
  approve,
  atOnce,
  count,
  deny,
  type Expect,
  edit,
  LEASE,
  recorded,
  type Spec,
  statusOf,
} from './bench.js'

export function leasing(spec: Spec, expect: Expect): void {
  spec('while the lease holds, a repeat is in progress; when it lapsed, interrupted', async (bench) => {
    const { ledger, record } = bench
    await ledger.issue(record)
    await ledger.claim(record, approve, 'h1', LEASE)
    bench.advance(LEASE - 1)
    expect(await ledger.claim(record, approve, 'h2', LEASE)).toEqual({ status: 'in-progress' })
    bench.advance(1)
    expect(await ledger.claim(record, approve, 'h2', LEASE)).toEqual({ status: 'interrupted' })
    expect(await ledger.claim(record, approve, 'h1', LEASE)).toEqual({ status: 'interrupted' })
    expect(statusOf(await ledger.claim(record, deny, 'h2', LEASE))).toEqual('conflict')
    expect((await ledger.lookup(record))?.state.phase).toEqual('interrupted')
  })

  spec('renewing extends the lease, for its holder only and only while it holds', async (bench) => {
    const { ledger, record } = bench
    expect(await ledger.renew(record, 'h1', LEASE)).toEqual({ status: 'lost' })
    await ledger.issue(record)
    await ledger.claim(record, approve, 'h1', LEASE)
    bench.advance(LEASE - 1)
    expect(await ledger.renew(record, 'h2', LEASE)).toEqual({ status: 'lost' })
    expect(await ledger.renew(record, 'h1', LEASE)).toEqual({ status: 'renewed' })
    bench.advance(LEASE - 1)
    expect(await ledger.claim(record, approve, 'h2', LEASE)).toEqual({ status: 'in-progress' })
    bench.advance(1)
    expect(await ledger.renew(record, 'h1', LEASE)).toEqual({ status: 'lost' })
  })

  spec('only the holder completes a claim, and only once', async (bench) => {
    const { ledger, record } = bench
    const outcome = { type: 'result', content: 'done' } as const
    expect(await ledger.complete(record, 'h1', outcome)).toEqual({ status: 'not-issued' })
    await ledger.issue(record)
    expect(await ledger.complete(record, 'h1', outcome)).toEqual({ status: 'fenced' })
    await ledger.claim(record, approve, 'h1', LEASE)
    expect(await ledger.complete(record, 'h2', outcome)).toEqual({ status: 'fenced' })
    expect(await ledger.complete({ ...record, owner: 'bob' }, 'h1', outcome)).toEqual({
      status: 'not-issued',
    })
    expect(await ledger.complete(record, 'h1', outcome)).toEqual(recorded)
    expect(await ledger.complete(record, 'h1', { type: 'result', content: 'other' })).toEqual({
      status: 'already-recorded',
    })
    expect((await ledger.lookup(record))?.state).toEqual({
      phase: 'done',
      answer: approve,
      outcome,
      late: false,
    })
  })

  spec('an outcome after the lease was lost is recorded and flagged', async (bench) => {
    const { ledger, record } = bench
    await ledger.issue(record)
    await ledger.claim(record, approve, 'h1', LEASE)
    bench.advance(LEASE)
    const outcome = { type: 'result', content: 'done' } as const
    expect(await ledger.complete(record, 'h1', outcome)).toEqual({ status: 'recorded', late: true })
    expect(await ledger.claim(record, approve, 'h2', LEASE)).toEqual({
      status: 'repeat',
      outcome,
      late: true,
    })
  })

  spec(
    'a call that its runner gave up is interrupted and never claimed again',
    async ({ ledger, record }) => {
      await ledger.issue(record)
      await ledger.claim(record, approve, 'h1', LEASE)
      expect(await ledger.complete(record, 'h1', { type: 'interrupted', message: 'timeout' })).toEqual(
        recorded,
      )
      expect(await ledger.claim(record, approve, 'h1', LEASE)).toEqual({ status: 'interrupted' })
      expect(await ledger.reclaim(record, 'h2', LEASE)).toEqual({ status: 'refused' })
      expect(await ledger.complete(record, 'h1', { type: 'result', content: 'x' })).toEqual({
        status: 'recorded',
        late: true,
      })
    },
  )

  spec(
    'only an interrupted call of an idempotent tool is reclaimed, by one, and the loser is fenced',
    async (bench) => {
      const { ledger, others } = bench
      const record = { ...bench.record, idempotent: true }
      expect(await ledger.reclaim(record, 'h0', LEASE)).toEqual({ status: 'not-issued' })
      await ledger.issue(record)
      expect(await ledger.reclaim(record, 'h0', LEASE)).toEqual({ status: 'refused' })
      await ledger.claim(record, edit('{"path":"b"}'), 'h1', LEASE)
      expect(await ledger.reclaim(record, 'h0', LEASE)).toEqual({ status: 'refused' })
      bench.advance(LEASE)
      const results = await atOnce(20, (index) =>
        others[index % others.length]?.reclaim(record, `r${index}`, LEASE),
      )
      expect(count(results)).toEqual({ claimed: 1, refused: 19 })
      const winner = results.findIndex((result) => result?.status === 'claimed')
      const won = results[winner]
      expect(won?.status === 'claimed' && won.answer).toEqual(edit('{"path":"b"}'))
      expect(await ledger.complete(record, 'h1', { type: 'result', content: 'old' })).toEqual({
        status: 'fenced',
      })
      expect(await ledger.complete(record, `r${winner}`, { type: 'result', content: 'new' })).toEqual(
        recorded,
      )
      expect(await ledger.reclaim(record, 'h3', LEASE)).toEqual({ status: 'refused' })
    },
  )

  spec('V5 a request is replaced only while its lease is held: a stale worker is fenced', async (bench) => {
    const { ledger } = bench
    const replaced = { type: 'cancelled', code: 'approval-stale', reason: 'changed', next: 'again' } as const
    const stale = await bench.issueAnother()
    await ledger.claim(stale, approve, 'h1', LEASE)
    bench.advance(LEASE + 1)
    // Others may have been told that it was interrupted, so no new request may take its place.
    expect(await ledger.complete(stale, 'h1', replaced)).toEqual({ status: 'fenced' })
    expect((await ledger.lookup(stale))?.state.phase).toEqual('interrupted')
    expect(await ledger.claim(stale, approve, 'h2', LEASE)).toEqual({ status: 'interrupted' })
    const held = await bench.issueAnother()
    await ledger.claim(held, approve, 'h1', LEASE)
    expect(await ledger.complete(held, 'h2', replaced)).toEqual({ status: 'fenced' })
    expect(await ledger.complete(held, 'h1', replaced)).toEqual(recorded)
    const repeat = { status: 'repeat', outcome: replaced, late: false }
    expect(await ledger.claim(held, approve, 'h3', LEASE)).toEqual(repeat)
    expect(await ledger.complete(held, 'h1', { ...replaced, next: 'other' })).toEqual({
      status: 'already-recorded',
    })
  })

  spec(
    "a provider's call that was handed out is taken over by one, who tells the provider",
    async (bench) => {
      const { ledger, others } = bench
      const record = { ...bench.record, providerExecuted: true }
      const handedOut = { type: 'handed-out', arguments: record.arguments } as const
      const repeat = { status: 'repeat', outcome: handedOut, late: false }
      await ledger.issue(record)
      await ledger.claim(record, approve, 'h1', LEASE)
      expect(await ledger.complete(record, 'h1', handedOut)).toEqual(recorded)
      expect(await ledger.claim(record, approve, 'h2', LEASE)).toEqual(repeat)
      const results = await atOnce(20, (index) =>
        others[index % others.length]?.reclaim(record, `r${index}`, LEASE),
      )
      expect(count(results)).toEqual({ claimed: 1, refused: 19 })
      const winner = `r${results.findIndex((result) => result?.status === 'claimed')}`
      expect((await ledger.unsettled('alice', 'thread')).map(({ state }) => state.phase)).toEqual(['claimed'])
      expect(await ledger.claim(record, approve, 'h2', LEASE)).toEqual({ status: 'in-progress' })
      expect(await ledger.complete(record, 'h1', handedOut)).toEqual({ status: 'fenced' })
      // Handed back, claimed again, and completed.
      expect(await ledger.complete(record, winner, handedOut)).toEqual(recorded)
      expect(await ledger.unsettled('alice', 'thread')).toEqual([])
      expect(await ledger.reclaim(record, 'h3', LEASE)).toEqual({
        status: 'claimed',
        answer: approve,
        revision: 0,
      })
      const outcome = { type: 'result', content: '1' } as const
      expect(await ledger.complete(record, 'h3', outcome)).toEqual(recorded)
      expect(await ledger.reclaim(record, 'h4', LEASE)).toEqual({ status: 'refused' })
      expect(await ledger.claim(record, approve, 'h4', LEASE)).toEqual({ ...repeat, outcome })
      expect(await ledger.unsettled('alice', 'thread')).toEqual([])

      const ours = await bench.issueAnother()
      await ledger.claim(ours, approve, 'h1', LEASE)
      await ledger.complete(ours, 'h1', handedOut)
      expect(await ledger.reclaim(ours, 'h2', LEASE)).toEqual({ status: 'refused' })
    },
  )

  spec('an outcome beyond 256 KiB is kept as hash and size', async (bench) => {
    const { ledger, record } = bench
    const content = 'é'.repeat(200 * 1024)
    await bench.issueAndRun(approve, content)
    const repeat = await ledger.claim(record, approve, 'h2', LEASE)
    const outcome = repeat.status === 'repeat' ? repeat.outcome : undefined
    const bytes = new TextEncoder().encode(JSON.stringify({ type: 'result', content })).length
    expect(outcome?.type === 'unavailable' && [outcome.of, outcome.bytes, outcome.hash.length]).toEqual([
      'result',
      bytes,
      43,
    ])
    const fits = await bench.issueAnother()
    await bench.run(fits, approve, 'h1', 'x'.repeat(256 * 1024 - 40))
    const again = await ledger.claim(fits, approve, 'h2', LEASE)
    expect(again.status === 'repeat' && again.outcome.type).toEqual('result')
  })
}
