import { ChatClient, stream } from '@countersign/client'
import { createAgent, memoryLedger, scriptedModel, tool } from '@countersign/server'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { call, say } from '../../packages/server/test/support.js'

/** A chat in one process whose server confirms answers while `who.confirmed`. */
async function ask() {
  const who = { confirmed: true }
  const runs: unknown[] = []
  const remove = tool({
    name: 'remove',
    description: 'Removes a file.',
    input: z.object({ path: z.string() }),
    needsApproval: true,
    execute: ({ path }) => {
      runs.push(path)
      return 'gone'
    },
  })
  const agent = createAgent({
    tools: [remove],
    model: scriptedModel([call(['c1', 'remove', { path: 'a.txt' }]), say('Removed.')]),
    approvals: {
      secret: 'only for this test, 32 bytes long!',
      ledger: memoryLedger(),
      confirm: async () => who.confirmed,
    },
    warn: () => {},
  })
  const client = new ChatClient({
    connection: stream((input, { signal }) => agent.run(input, { signal, context: { subject: 'alice' } })),
  })
  await client.sendMessage('go')
  const id = client.getSnapshot().pendingApprovals[0]?.approval?.id ?? expect.fail('nothing was asked')
  return { client, who, runs, id }
}

test('where `confirm` says no the request stays open, and an answer that is confirmed runs the call once', async () => {
  const { client, who, runs, id } = await ask()
  who.confirmed = false
  const refused = await client.addToolApprovalResponse({ id, approved: true })
  expect(refused).toMatchObject({ status: 'refused', code: 'approval-not-yours' })
  const { status, pendingApprovals } = client.getSnapshot()
  expect([status, pendingApprovals.length, runs]).toEqual(['awaiting-approval', 1, []])
  expect(pendingApprovals[0]?.error).toMatchObject({ code: 'approval-not-yours' })
  who.confirmed = true
  expect(await client.addToolApprovalResponse({ id, approved: true })).toEqual({ status: 'sent' })
  expect(runs).toEqual(['a.txt'])
  expect(client.getSnapshot().messages.at(-1)?.parts.at(-1)).toMatchObject({ text: 'Removed.' })
})
