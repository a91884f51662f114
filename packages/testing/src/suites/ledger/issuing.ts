import type { ApprovalRecord, GrantKey } from '@countersign/server'
import { distinctTexts } from '../distinct.js'
import { approve, deny, type Expect, LEASE, recorded, type Spec, statusOf } from './bench.js'

export function issuing(spec: Spec, expect: Expect): void {
  spec(
    'what was issued is found by owner, thread and id, and by nothing else',
    async ({ ledger, record }) => {
      expect(await ledger.issue(record)).toEqual({ status: 'issued' })
      expect(await ledger.lookup(record)).toEqual({ record, state: { phase: 'issued' } })
      expect(await ledger.lookup({ ...record, owner: 'bob' })).toEqual(undefined)
      expect(await ledger.lookup({ ...record, owner: null })).toEqual(undefined)
      expect(await ledger.lookup({ ...record, threadId: 'other' })).toEqual(undefined)
      expect(await ledger.lookup({ ...record, approvalId: 'other' })).toEqual(undefined)
    },
  )

  spec(
    'the same record again changes nothing, another one under its id is a conflict',
    async ({ ledger, record }) => {
      await ledger.issue(record)
      expect(await ledger.issue({ ...record })).toEqual({ status: 'unchanged' })
      expect(await ledger.issue({ ...record, arguments: '{"path":"b"}' })).toEqual({ status: 'conflict' })
      expect((await ledger.lookup(record))?.record).toEqual(record)
      await ledger.claim(record, approve, 'h1', LEASE)
      expect(await ledger.issue(record)).toEqual({ status: 'unchanged' })
      expect((await ledger.lookup(record))?.state.phase).toEqual('claimed')
    },
  )

  spec('what a ledger returns of a request changes nothing if it is changed', async ({ ledger, record }) => {
    await ledger.issue(record)
    const found = await ledger.lookup(record)
    try {
      if (found !== undefined) Object.assign(found.record, { arguments: '{"to":"mallory"}', owner: 'bob' })
    } catch {
      // It may be frozen.
    }
    expect((await ledger.lookup(record))?.record).toEqual(record)
    const [open] = await ledger.unsettled(record.owner, record.threadId)
    expect(open?.record).toEqual(record)
  })

  spec('one id issued to two owners is two approvals', async ({ ledger, record }) => {
    const other = { ...record, owner: 'bob', arguments: '{}' }
    expect(await ledger.issue(record)).toEqual({ status: 'issued' })
    expect(await ledger.issue(other)).toEqual({ status: 'issued' })
    expect(statusOf(await ledger.claim(record, approve, 'h1', LEASE))).toEqual('claimed')
    expect((await ledger.lookup(other))?.state).toEqual({ phase: 'issued' })
  })

  spec('owners, threads and ids that join to the same text stay apart', async ({ ledger, record }) => {
    await ledger.issue({ ...record, owner: 'a', threadId: 'bc', approvalId: 'd' })
    expect(await ledger.lookup({ owner: 'ab', threadId: 'c', approvalId: 'd' })).toEqual(undefined)
    expect(await ledger.lookup({ owner: 'a', threadId: 'b', approvalId: 'cd' })).toEqual(undefined)
  })

  spec(
    'approvals and grants keep to their own owners, threads and ids, whatever is in them',
    async ({ ledger, record }) => {
      for (const name of ['owner', 'threadId', 'approvalId'] as const)
        for (const text of distinctTexts) {
          const own = { ...record, [name]: text }
          expect([name, text, await ledger.lookup(own)]).toEqual([name, text, undefined])
          expect(await ledger.issue(own)).toEqual({ status: 'issued' })
        }
      const key: GrantKey = { owner: 'ann', threadId: 'thread', toolName: 'tool', scopeKey: 'key' }
      for (const name of ['owner', 'threadId', 'toolName', 'scopeKey'] as const)
        for (const text of distinctTexts) {
          const own = { ...key, [name]: text }
          expect([name, text, await ledger.findGrant(own, 'use')]).toEqual([name, text, undefined])
          await ledger.grant({ ...own, approved: true })
        }
    },
  )

  spec(
    'U.11 ids that name members of Object.prototype neither match nor crash',
    async ({ ledger, record }) => {
      for (const id of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '']) {
        const odd: ApprovalRecord = {
          ...record,
          owner: id,
          threadId: id,
          approvalId: id,
          toolCallId: id,
          toolName: id,
        }
        const key: GrantKey = { owner: id, threadId: id, toolName: id, scopeKey: id }
        expect(await ledger.lookup(odd)).toEqual(undefined)
        expect(await ledger.claim(odd, approve, id, LEASE)).toEqual({ status: 'not-issued' })
        expect(await ledger.findGrant(key, 'use')).toEqual(undefined)
        expect(await ledger.issue(odd)).toEqual({ status: 'issued' })
        expect((await ledger.lookup(odd))?.record).toEqual(odd)
        expect(statusOf(await ledger.claim(odd, approve, id, LEASE))).toEqual('claimed')
        expect(await ledger.complete(odd, id, { type: 'result', content: '1' })).toEqual(recorded)
        await ledger.grant({ ...key, approved: true })
        expect((await ledger.findGrant(key, 'use'))?.toolName).toEqual(id)
        expect(await ledger.revoke(key)).toEqual(1)
      }
    },
  )

  spec(
    'F18 of each call the approval that was issued last is told, once it is done',
    async ({ ledger, record }) => {
      if (ledger.settled === undefined) return
      const { settled } = ledger
      const second = { ...record, approvalId: 'approval_2' }
      const other = { ...record, approvalId: 'approval_3', toolCallId: 'call_3' }
      const ids = [record.toolCallId, 'call_3', 'nobody']
      const told = async (owner: string | null = 'alice', threadId = 'thread') =>
        (await settled(owner, threadId, ids)).map((entry) => entry.record.approvalId).sort()
      for (const one of [record, other]) await ledger.issue(one)
      expect(await told()).toEqual([])
      for (const one of [record, other]) await ledger.claim(one, deny, 'h1', LEASE)
      expect(await told()).toEqual(['approval_1', 'approval_3'])
      expect(await told('bob')).toEqual([])
      expect(await told(null)).toEqual([])
      expect(await told('alice', 'other')).toEqual([])
      expect(await settled('alice', 'thread', [])).toEqual([])
      await ledger.issue(second)
      expect(await told()).toEqual(['approval_3'])
      await ledger.claim(second, deny, 'h1', LEASE)
      expect(await told()).toEqual(['approval_2', 'approval_3'])
    },
  )

  spec('unsettled entries of a thread are listed until they are done', async ({ ledger, record }) => {
    const second = { ...record, approvalId: 'approval_2', toolCallId: 'call_2' }
    await ledger.issue(record)
    await ledger.issue(second)
    await ledger.issue({ ...record, threadId: 'other' })
    const open = async () =>
      (await ledger.unsettled('alice', 'thread')).map((entry) => [entry.record.approvalId, entry.state.phase])
    expect(await open()).toEqual([
      ['approval_1', 'issued'],
      ['approval_2', 'issued'],
    ])
    await ledger.claim(record, deny, 'h1', LEASE)
    await ledger.claim(second, approve, 'h1', LEASE)
    expect(await open()).toEqual([['approval_2', 'claimed']])
    await ledger.complete(second, 'h1', { type: 'result', content: '1' })
    expect(await open()).toEqual([])
    expect(await ledger.unsettled('bob', 'thread')).toEqual([])
  })
}
