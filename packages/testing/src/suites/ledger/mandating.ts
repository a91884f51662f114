import type { GrantRequest, Ledger, MandateCall } from '@countersign/server'
import { approve, atOnce, deny, type Expect, LEASE, type Spec } from './bench.js'

/** For ledgers that keep mandates. */
export function mandating(spec: Spec, expect: Expect): void {
  const tool = { owner: 'alice', threadId: 'thread', toolName: 'pay' }
  const given = (more: Partial<GrantRequest> = {}): GrantRequest => ({
    ...{ ...tool, scopeKey: 'terms', approved: true },
    ...more,
    terms: {
      ...{ label: 'Pay Acme', where: [{ field: 'to', is: 'acme' }], tool: 'v1', approvalId: 'a1' },
      budget: { field: 'amount', total: 100, unit: 'EUR' },
      ...more.terms,
    },
  })
  let keys = 0
  const paying = (amount: unknown, more: Partial<MandateCall> = {}): MandateCall => ({
    ...{ ...tool, tool: 'v1', input: { to: 'acme', amount }, callKey: `key ${++keys}`, since: 0 },
    ...more,
  })
  const use = (ledger: Ledger | undefined, call: MandateCall) => ledger?.findMandate?.(call, 'use')
  const rest = async (ledger: Ledger) =>
    (await ledger.list('alice')).map(({ usesLeft, terms }) => ({
      usesLeft,
      spent: terms?.spent,
      used: terms?.used,
    }))
  const keeps = ({ ledger }: { readonly ledger: Ledger }) => ledger.findMandate !== undefined

  spec('W7 W8 a mandate lets calls through until its budget or its uses are spent', async (bench) => {
    if (!keeps(bench)) return
    const { ledger } = bench
    await ledger.grant(given({ uses: 3 }))
    expect((await ledger.findMandate?.(paying(60), 'look'))?.terms?.spent).toEqual(0)
    expect((await use(ledger, paying(60)))?.terms?.spent).toEqual(60)
    expect(await use(ledger, paying(40.01))).toEqual(undefined)
    expect((await use(ledger, paying(40)))?.usesLeft).toEqual(1)
    expect((await use(ledger, paying(0)))?.usesLeft).toEqual(0)
    expect(await use(ledger, paying(0))).toEqual(undefined)
    expect(await ledger.list('alice')).toEqual([])
  })

  spec('W9 workers at once exceed neither budget nor uses, and a use counts once', async (bench) => {
    if (!keeps(bench)) return
    const { ledger, others } = bench
    await ledger.grant(given({ uses: 7 }))
    const used = await atOnce(20, (index) => use(others[index % others.length], paying(10)))
    expect(used.filter((one) => one !== undefined).length).toEqual(7)
    await ledger.grant(given({ terms: { ...given().terms, approvalId: 'a2' } as GrantRequest['terms'] }))
    const spent = await atOnce(20, (index) => use(others[index % others.length], paying(15)))
    expect(spent.filter((one) => one !== undefined).length).toEqual(6)
    expect(await rest(ledger)).toEqual([{ usesLeft: undefined, spent: 90, used: 6 }])
    const same = paying(5)
    await atOnce(4, (index) => use(others[index % others.length], same))
    expect(await rest(ledger)).toEqual([{ usesLeft: undefined, spent: 95, used: 7 }])
  })

  spec('W7 what did not start is given back, once', async (bench) => {
    if (!keeps(bench)) return
    const { ledger, others } = bench
    await ledger.grant(given({ uses: 1 }))
    const call = paying(33.3)
    await use(ledger, call)
    expect(await use(ledger, paying(1))).toEqual(undefined)
    await atOnce(4, (index) => others[index % others.length]?.returnUse?.(tool, call.callKey))
    await ledger.returnUse?.(tool, 'another')
    expect(await rest(ledger)).toEqual([{ usesLeft: 1, spent: 0, used: 0 }])
    expect((await use(ledger, paying(100)))?.usesLeft).toEqual(0)
  })

  spec(
    'W6 W19 a mandate is for its owner, conversation, tool, server and version, and for what it says',
    async (bench) => {
      if (!keeps(bench)) return
      const { ledger } = bench
      await ledger.grant(given())
      const others: readonly Partial<MandateCall>[] = [
        { owner: 'bob' },
        { threadId: 'other' },
        { toolName: 'send' },
        { toolServer: 'bank' },
        { tool: 'v2' },
        { input: { to: 'acme' } },
        { input: { to: 'globex', amount: 1 } },
        { input: { to: 'acme', amount: '1' } },
        { input: { to: 'acme', amount: -1 } },
        { since: Number.MAX_SAFE_INTEGER },
      ]
      for (const other of others) expect(await use(ledger, paying(1, other))).toEqual(undefined)
      expect((await use(ledger, paying(1)))?.terms?.label).toEqual('Pay Acme')
      // No session grant comes of it, whatever a tool's scopeKey returns.
      for (const scopeKey of ['terms', 'pay', '']) {
        expect(await ledger.findGrant({ ...tool, scopeKey }, 'use')).toEqual(undefined)
      }
    },
  )

  spec(
    'W10 W11 an expired or revoked mandate lets nothing through; a revocation wins over one in flight',
    async (bench) => {
      if (!keeps(bench)) return
      const { ledger, record } = bench
      await ledger.grant(given({ ttl: 1000 }))
      bench.advance(999)
      expect((await use(ledger, paying(1)))?.terms?.used).toEqual(1)
      bench.advance(1)
      expect(await use(ledger, paying(1))).toEqual(undefined)
      await ledger.grant(
        given({ scopeKey: 'other', terms: { ...given().terms, approvalId: 'a2' } as GrantRequest['terms'] }),
      )
      await ledger.grant(given({ terms: { ...given().terms, approvalId: 'a3' } as GrantRequest['terms'] }))
      const [first, second] = await ledger.list('alice')
      expect(await ledger.revoke({ owner: 'bob', id: first?.id })).toEqual(0)
      expect(await ledger.revoke({ owner: 'alice', id: first?.id })).toEqual(1)
      expect((await ledger.list('alice')).map(({ id }) => id)).toEqual([second?.id])
      expect((await use(ledger, paying(1)))?.id).toEqual(second?.id)
      expect(await ledger.revoke({ owner: 'alice', toolName: 'pay' })).toEqual(1)
      expect(await use(ledger, paying(1))).toEqual(undefined)
      await ledger.issue(record)
      const claim = await ledger.claim(record, { ...approve, mandate: 'm' }, 'h1', LEASE)
      const revision = claim.status === 'claimed' ? claim.revision : undefined
      await ledger.revoke({ owner: 'alice', threadId: 'nowhere' })
      expect(await ledger.grant(given({ revision }))).toEqual({ status: 'revoked' })
    },
  )

  spec('W12 a denial comes before every mandate, and is revocable', async (bench) => {
    if (!keeps(bench)) return
    const { ledger } = bench
    await ledger.grant(given())
    const terms = { label: 'Never', where: [], tool: 'v1', approvalId: 'a2' }
    await ledger.grant({ ...tool, scopeKey: 'never', approved: false, terms })
    for (const purpose of ['look', 'use'] as const)
      expect((await ledger.findMandate?.(paying(1), purpose))?.approved).toEqual(false)
    expect((await rest(ledger)).map(({ used }) => used)).toEqual([0, 0])
    const denial = (await ledger.list('alice')).find(({ approved }) => !approved)
    await ledger.revoke({ owner: 'alice', id: denial?.id })
    expect((await use(ledger, paying(1)))?.approved).toEqual(true)
  })

  spec('W11 a use that is given back does not bring back a mandate that was revoked', async (bench) => {
    if (!keeps(bench)) return
    const { ledger, others } = bench
    for (const selector of [{}, { threadId: 'thread' }, { toolName: 'pay' }]) {
      await ledger.grant(given({ uses: 1 }))
      const last = paying(5)
      const used = await use(ledger, last)
      expect(used?.usesLeft).toEqual(0)
      await ledger.revoke({ owner: 'alice', ...(used && { id: used.id }), ...selector })
      await atOnce(2, (index) => others[index % others.length]?.returnUse?.(tool, last.callKey))
      expect(await ledger.list('alice')).toEqual([])
      expect(await use(ledger, paying(5))).toEqual(undefined)
    }
  })

  spec(
    'W12 a denial never ends, and stays for a new version of its tool and after an epoch',
    async (bench) => {
      if (!keeps(bench)) return
      const { ledger } = bench
      const terms = { label: 'Never', where: [{ field: 'to', is: 'acme' }], tool: 'v1', approvalId: 'a2' }
      await ledger.grant({ ...tool, scopeKey: 'never', approved: false, terms })
      bench.advance(365 * 24 * 3_600_000)
      const later = { tool: 'v2', since: Number.MAX_SAFE_INTEGER }
      expect((await ledger.findMandate?.(paying(1, later), 'look'))?.approved).toEqual(false)
      expect((await ledger.list('alice')).length).toEqual(1)
      // What can't be told apart from it is refused as well.
      for (const to of ['ACME', 'ac\u00adme', ['acme'], 5])
        expect((await ledger.findMandate?.(paying(1, { input: { to } }), 'look'))?.approved).toEqual(false)
      for (const input of [{ to: 'globex' }, { to: null }, {}])
        expect(await ledger.findMandate?.(paying(1, { input }), 'look')).toEqual(undefined)
    },
  )

  spec('W12 a denial without room is refused, and none is dropped for it or for a mandate', async (bench) => {
    if (!keeps(bench)) return
    const { ledger } = bench
    const deny = (n: number) =>
      ledger.grant({
        ...{ ...tool, scopeKey: `never ${n}`, approved: false },
        terms: { label: 'Never', where: [{ field: 'to', is: `${n}` }], tool: 'v1', approvalId: `a${n}` },
      })
    for (let n = 0; n < 64; n++) expect((await deny(n)).status).toEqual('granted')
    expect(await deny(64)).toEqual({ status: 'full' })
    expect((await deny(0)).status).toEqual('granted')
    await ledger.grant(given())
    for (const [n, found] of [
      [0, false],
      [63, false],
      [64, undefined],
    ] as const)
      expect((await use(ledger, paying(1, { input: { to: `${n}` } })))?.approved).toEqual(found)
    expect((await use(ledger, paying(1)))?.approved).toEqual(true)
    expect(await ledger.revoke({ owner: 'alice' })).toEqual(65)
  })

  spec(
    'W9 a mandate with limits without room is not given, and no other with limits is dropped for it',
    async (bench) => {
      if (!keeps(bench)) return
      const { ledger } = bench
      const give = (to: string, more: Partial<GrantRequest> = {}) =>
        ledger.grant({
          ...{ ...tool, scopeKey: to, approved: true, uses: 2, ...more },
          terms: { label: 'Pay', where: [{ field: 'to', is: to }], tool: 'v1', approvalId: `for ${to}` },
        })
      const call = paying(1, { input: { to: 'acme', amount: 1 } })
      await give('any', { uses: undefined })
      for (let n = 0; n < 63; n++) expect((await give(`${n}`)).status).toEqual('granted')
      // What loses nothing makes room.
      expect((await give('last')).status).toEqual('granted')
      expect(await use(ledger, paying(1, { input: { to: 'any' } }))).toEqual(undefined)
      expect(await give('acme', { call })).toEqual({ status: 'uncounted' })
      expect(await give('acme')).toEqual({ status: 'full' })
      expect(await give('acme', { uses: undefined, call })).toEqual({ status: 'full' })
      for (const to of ['0', '62', 'last'])
        expect((await use(ledger, paying(1, { input: { to } })))?.usesLeft).toEqual(1)
    },
  )

  spec(
    'W12 a denial ends once every approval that chose it has taken it back, or its user revokes it',
    async (bench) => {
      if (!keeps(bench)) return
      const { ledger, others, record } = bench
      const deny = (approvalId: string, ttl?: number) =>
        ledger.grant({
          ...{ ...tool, scopeKey: 'never', approved: false, ttl },
          terms: { label: 'Never', where: [], tool: 'v1', approvalId },
        })
      const first = await deny('a1', 1000)
      const id = first.status === 'granted' ? first.grant.id : undefined
      await deny('a1', 1000)
      bench.advance(500)
      const second = await deny('a2', 1000)
      expect(second.status === 'granted' && second.grant.id).toEqual(id)
      bench.advance(600)
      await ledger.issue(record)
      const claim = await ledger.claim(record, { ...approve, mandate: 'm' }, 'h1', LEASE)
      await atOnce(4, (index) =>
        others[index % others.length]?.revoke({ owner: 'alice', id, approvalId: 'a2' }),
      )
      await ledger.revoke({ owner: 'alice', id, approvalId: 'unknown' })
      expect((await ledger.list('alice')).map((one) => one.id)).toEqual([id])
      await ledger.revoke({ owner: 'alice', id, approvalId: 'a1' })
      expect(await ledger.list('alice')).toEqual([])
      // To take one back is no revocation.
      const revision = claim.status === 'claimed' ? claim.revision : undefined
      expect((await ledger.grant(given({ revision }))).status).toEqual('granted')
      await deny('a3')
      await deny('a4')
      expect(await ledger.revoke({ owner: 'alice' })).toEqual(2)
      expect(await ledger.list('alice')).toEqual([])
    },
  )

  spec('W12 one approval stores each denial that is chosen with it', async (bench) => {
    if (!keeps(bench)) return
    const { ledger } = bench
    for (const to of ['acme', 'globex'])
      await ledger.grant({
        ...{ ...tool, scopeKey: to, approved: false },
        terms: { label: to, where: [{ field: 'to', is: to }], tool: 'v1', approvalId: 'a1' },
      })
    for (const to of ['acme', 'globex'])
      expect((await use(ledger, paying(1, { input: { to } })))?.terms?.label).toEqual(to)
  })

  spec('what a ledger returns of a mandate is a copy: to change it changes nothing', async (bench) => {
    if (!keeps(bench)) return
    const { ledger } = bench
    const request = given()
    const granted = await ledger.grant(request)
    const listed = await ledger.list('alice')
    const found = await ledger.findMandate?.(paying(1), 'look')
    const all = [granted.status === 'granted' ? granted.grant : undefined, ...listed, found]
    for (const terms of [request.terms, ...all.map((grant) => grant?.terms)]) {
      const where = terms?.where
      if (Array.isArray(where)) where.length = 0
    }
    expect(await use(ledger, paying(1, { input: { to: 'globex', amount: 1 } }))).toEqual(undefined)
    expect((await use(ledger, paying(1)))?.approved).toEqual(true)
  })

  spec('a mandate is stored once for its approval; the same terms start anew with another', async (bench) => {
    if (!keeps(bench)) return
    const { ledger } = bench
    await ledger.grant(given({ uses: 5, call: paying(20) }))
    await use(ledger, paying(20))
    await ledger.grant(given({ uses: 5, call: paying(20) }))
    expect(await rest(ledger)).toEqual([{ usesLeft: 3, spent: 40, used: 2 }])
    await ledger.grant(
      given({ uses: 5, terms: { ...given().terms, approvalId: 'a2' } as GrantRequest['terms'] }),
    )
    expect(await rest(ledger)).toEqual([{ usesLeft: 5, spent: 0, used: 0 }])
  })

  spec(
    'W9 the same mandate, chosen for calls that were asked about before it was given, covers them all or not',
    async (bench) => {
      if (!keeps(bench)) return
      const { ledger, others } = bench
      const first = await ledger.grant(given({ uses: 3, call: paying(50), askedAt: 0 }))
      const grantedAt = first.status === 'granted' ? first.grant.grantedAt : 0
      const also = (approvalId: string, call: MandateCall, askedAt = grantedAt) => ({
        ...given({ uses: 3, call, askedAt }),
        terms: { ...given().terms, approvalId } as GrantRequest['terms'],
      })
      const same = also('a2', paying(40))
      await atOnce(4, (index) => others[index % others.length]?.grant(same))
      expect(await rest(ledger)).toEqual([{ usesLeft: 1, spent: 90, used: 2 }])
      expect(await ledger.grant(also('a3', paying(11)))).toEqual({ status: 'exceeded' })
      expect((await ledger.grant(also('a4', paying(10)))).status).toEqual('granted')
      expect(await ledger.grant(also('a5', paying(0)))).toEqual({ status: 'exceeded' })
      expect((await ledger.grant(also('a6', paying(1, { input: { to: 'globex' } })))).status).toEqual(
        'granted',
      )
      await ledger.grant(also('a7', paying(60), grantedAt + 1))
      expect(await rest(ledger)).toEqual([{ usesLeft: 2, spent: 60, used: 1 }])
    },
  )

  spec('W9 a mandate whose call is tried again is given for the rest of its time, once', async (bench) => {
    if (!keeps(bench)) return
    const { ledger } = bench
    const call = paying(20)
    const again = (age: number) => given({ uses: 2, ttl: 1000 * LEASE, call, age })
    expect(await ledger.grant(again(1000 * LEASE))).toEqual({ status: 'revoked' })
    expect(await rest(ledger)).toEqual([])
    const tried = await ledger.grant(again(100 * LEASE))
    const { grantedAt = 0, expiresAt = 0 } = tried.status === 'granted' ? tried.grant : {}
    expect(expiresAt - grantedAt).toEqual(900 * LEASE)
    expect(await ledger.grant(again(200 * LEASE))).toEqual({ status: 'revoked' })
    expect(await rest(ledger)).toEqual([{ usesLeft: 1, spent: 20, used: 1 }])
  })

  spec('an answer with another mandate is another answer', async ({ ledger, record }) => {
    await ledger.issue(record)
    await ledger.claim(record, { ...deny, mandate: 'never' }, 'h1', LEASE)
    expect((await ledger.claim(record, { ...deny, mandate: 'never' }, 'h2', LEASE)).status).toEqual('repeat')
    expect((await ledger.claim(record, deny, 'h3', LEASE)).status).toEqual('conflict')
  })
}
