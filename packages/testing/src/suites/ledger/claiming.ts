import {
  approve,
  atOnce,
  cancel,
  count,
  DAY,
  deny,
  type Expect,
  edit,
  expire,
  HOUR,
  LEASE,
  recorded,
  type Spec,
  statusOf,
} from './bench.js'

export function claiming(spec: Spec, expect: Expect): void {
  spec('an id that was never issued is refused', async ({ ledger, record }) => {
    for (const answer of [approve, deny, cancel, expire]) {
      expect(await ledger.claim(record, answer, 'h1', LEASE)).toEqual({ status: 'not-issued' })
    }
  })

  spec('the owner is checked before anything else, and another owner learns nothing', async (bench) => {
    const { ledger, record } = bench
    await ledger.issue(record)
    const theirs = { ...record, owner: 'bob' }
    expect(await ledger.claim(theirs, approve, 'h1', LEASE)).toEqual({ status: 'not-issued' })
    await bench.run(record, approve, 'h1', 'kept')
    expect(await ledger.claim(theirs, approve, 'h1', LEASE)).toEqual({ status: 'not-issued' })
    expect(await ledger.claim({ ...record, owner: null }, deny, 'h1', LEASE)).toEqual({
      status: 'not-issued',
    })
    bench.advance(HOUR)
    expect(await ledger.claim(theirs, approve, 'h1', LEASE)).toEqual({ status: 'not-issued' })
  })

  spec('U.10 of 50 identical claims at once exactly one succeeds', async ({ ledger, others, record }) => {
    await ledger.issue(record)
    const claims = await atOnce(50, (index) =>
      others[index % others.length]?.claim(record, approve, `h${index}`, LEASE),
    )
    expect(count(claims)).toEqual({ claimed: 1, 'in-progress': 49 })
  })

  spec('of 50 contradicting claims at once exactly one succeeds', async ({ ledger, others, record }) => {
    await ledger.issue(record)
    const answers = [approve, deny, cancel, { ...approve, scope: 'session' as const }, edit('{"path":"b"}')]
    const claims = await atOnce(50, (index) => {
      const answer = answers[index % answers.length] ?? approve
      return others[index % others.length]?.claim(record, answer, `h${index}`, LEASE)
    })
    const counted = count(claims)
    expect(counted.claimed).toEqual(1)
    expect((counted['in-progress'] ?? 0) + (counted.repeat ?? 0)).toEqual(9)
    expect(counted.conflict).toEqual(40)
  })

  spec('a repeat of the same answer returns the stored outcome', async (bench) => {
    const { ledger, record } = bench
    await bench.issueAndRun(approve, 'done')
    for (const holder of ['h1', 'h2']) {
      expect(await ledger.claim(record, approve, holder, LEASE)).toEqual({
        status: 'repeat',
        outcome: { type: 'result', content: 'done' },
        late: false,
      })
    }
  })

  spec('answers and outcomes fit in a ledger that takes no more requests', async (bench) => {
    const { ledger, record } = bench
    await ledger.issue(record)
    const [denied, closed] = [await bench.issueAnother(), await bench.issueAnother()]
    for (const size of [20_000, 2000, 200, 0]) {
      let taken = 0
      const another = () => ({ ...record, threadId: `${size} ${taken}`, arguments: 'x'.repeat(size) })
      while (taken < 25 && (await ledger.issue(another())).status === 'issued') taken++
    }
    const reason = 'r'.repeat(4096)
    const edited = { ...approve, arguments: '{"path":"b"}', reason }
    for (const [one, answer] of [
      [record, edited],
      [denied, { ...deny, reason }],
      [closed, { ...cancel, reason: 'user moved on' }],
    ] as const)
      expect(statusOf(await ledger.claim(one, answer, 'h1', LEASE))).toEqual('claimed')
    expect(await ledger.complete(record, 'h1', { type: 'result', content: 'r'.repeat(5000) })).toEqual(
      recorded,
    )
    expect(await ledger.unsettled('alice', 'thread')).toEqual([])
    for (const [one, answer] of [
      [record, edited],
      [denied, deny],
      [closed, cancel],
    ] as const)
      expect(statusOf(await ledger.claim(one, answer, 'h2', LEASE))).toEqual('repeat')
  })

  spec('a stored failure is returned, not run again', async ({ ledger, record }) => {
    await ledger.issue(record)
    await ledger.claim(record, approve, 'h1', LEASE)
    await ledger.complete(record, 'h1', { type: 'error', message: 'disk full', code: 'ENOSPC' })
    expect(await ledger.claim(record, approve, 'h2', LEASE)).toEqual({
      status: 'repeat',
      outcome: { type: 'error', message: 'disk full', code: 'ENOSPC' },
      late: false,
    })
  })

  spec('the reason of an answer does not matter to a repeat', async (bench) => {
    const { ledger, record } = bench
    await bench.issueAndRun({ ...approve, reason: 'fine' }, 'done')
    expect(statusOf(await ledger.claim(record, approve, 'h2', LEASE))).toEqual('repeat')
    const denied = await bench.issueAnother()
    await ledger.claim(denied, { decision: 'deny', reason: 'no' }, 'h1', LEASE)
    expect(await ledger.claim(denied, { decision: 'deny', reason: 'never' }, 'h1', LEASE)).toEqual({
      status: 'repeat',
      outcome: { type: 'denied', reason: 'no' },
      late: false,
    })
  })

  spec(
    'another decision, scope or edit than the first is a conflict, before and after the outcome',
    async (bench) => {
      const { ledger, record } = bench
      const contradictions = [deny, cancel, { ...approve, scope: 'session' as const }, edit('{"path":"b"}')]
      await ledger.issue(record)
      await ledger.claim(record, approve, 'h1', LEASE)
      for (const answer of contradictions) {
        expect(await ledger.claim(record, answer, 'h2', LEASE)).toEqual({
          status: 'conflict',
          settled: 'approve',
        })
      }
      await ledger.complete(record, 'h1', { type: 'result', content: 'done' })
      for (const answer of contradictions) {
        expect(await ledger.claim(record, answer, 'h2', LEASE)).toEqual({
          status: 'conflict',
          settled: 'approve',
        })
      }
    },
  )

  spec('an edit that leaves the arguments as they were is no edit', async (bench) => {
    const { ledger, record } = bench
    await bench.issueAndRun(edit(record.arguments), 'done')
    expect(statusOf(await ledger.claim(record, approve, 'h2', LEASE))).toEqual('repeat')
  })

  spec('deny and cancel settle in one step, and a later yes is a conflict', async (bench) => {
    const { ledger } = bench
    for (const [answer, outcome] of [
      [
        { decision: 'deny', reason: 'no' },
        { type: 'denied', reason: 'no' },
      ],
      [
        { decision: 'cancel', code: 'approval-stale' },
        { type: 'cancelled', code: 'approval-stale' },
      ],
    ] as const) {
      const record = await bench.issueAnother()
      expect(statusOf(await ledger.claim(record, answer, 'h1', LEASE))).toEqual('claimed')
      expect((await ledger.lookup(record))?.state).toEqual({ phase: 'done', answer, outcome, late: false })
      expect(await ledger.claim(record, approve, 'h1', LEASE)).toEqual({
        status: 'conflict',
        settled: answer.decision,
      })
    }
  })

  spec('from its expiry on a request is refused, also when the clock goes back', async (bench) => {
    const { ledger, record } = bench
    await ledger.issue(record)
    bench.advance(HOUR)
    expect(await ledger.claim(record, approve, 'h1', LEASE)).toEqual({ status: 'expired' })
    bench.advance(-HOUR)
    expect(await ledger.claim(record, approve, 'h1', LEASE)).toEqual({ status: 'expired' })
    expect(await ledger.claim(record, deny, 'h1', LEASE)).toEqual({ status: 'expired' })
  })

  spec('the server settles an expired request once, then every answer to it is expired', async (bench) => {
    const { ledger, record } = bench
    await ledger.issue(record)
    bench.advance(HOUR)
    expect(statusOf(await ledger.claim(record, expire, 'h1', LEASE))).toEqual('claimed')
    expect(await ledger.claim(record, expire, 'h1', LEASE)).toEqual({
      status: 'repeat',
      outcome: { type: 'cancelled', code: 'approval-expired' },
      late: false,
    })
    expect(await ledger.claim(record, approve, 'h1', LEASE)).toEqual({ status: 'expired' })
  })

  spec('an answer carried out in time is still repeated after the expiry', async (bench) => {
    await bench.issueAndRun(approve, 'done')
    bench.advance(HOUR)
    expect(statusOf(await bench.ledger.claim(bench.record, approve, 'h1', LEASE))).toEqual('repeat')
  })

  spec('what is forgotten is refused, never allowed', async (bench) => {
    const { ledger, record } = bench
    await bench.issueAndRun(approve, 'done')
    bench.advance(HOUR + DAY)
    for (let index = 0; index < 3; index++) await bench.issueAnother()
    const result = statusOf(await ledger.claim(record, approve, 'h2', LEASE))
    expect(['not-issued', 'repeat', 'expired'].includes(result)).toEqual(true)
  })
}
