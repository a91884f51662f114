import { memoryLedger } from '@countersign/server'
import { expect, test } from 'vitest'

const key = { owner: 'ann', threadId: 't', toolName: 'pay' }

test('W12 of more mandates than are kept for a tool, the oldest is dropped, and a standing denial last', async () => {
  const ledger = memoryLedger()
  const grant = (n: number, to: string, approved: boolean) =>
    ledger.grant({
      ...{ ...key, scopeKey: `terms ${n}`, approved },
      terms: {
        ...{ label: `Pay ${to}`, tool: 'v1', approvalId: `approval ${n}` },
        where: [{ field: 'to', is: to }],
      },
    })
  await grant(0, 'mallory', false)
  for (let n = 1; n <= 64; n++) await grant(n, `supplier ${n}`, true)
  const find = (to: string) =>
    ledger.findMandate?.({ ...key, tool: 'v1', input: { to }, callKey: 'call', since: 0 }, 'look')
  expect(await ledger.list('ann', 't')).toHaveLength(64)
  expect(await find('mallory')).toMatchObject({ approved: false })
  expect(await find('supplier 1')).toBeUndefined()
  expect(await find('supplier 2')).toMatchObject({ approved: true })
})
