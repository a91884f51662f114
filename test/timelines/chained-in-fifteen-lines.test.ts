import { ChatClient } from '@countersign/client'
import { gated, hold, resolve, scriptedConnection, text, until } from '@countersign/testing'
import { expect, test } from 'vitest'

test('a second approval, given while its own stream is still open, is sent', async () => {
  const server = scriptedConnection([
    gated(1),
    [resolve(), gated(2, 'send_mail', { to: 'team' }), hold('stream 2')],
    [resolve(), text('All done.')],
  ])
  const client = new ChatClient({ connection: server })
  await client.sendMessage('Tidy up, then tell the team.')
  void client.addToolApprovalResponse({ id: 'a1', approved: true })
  await until(client, ({ pendingApprovals }) => pendingApprovals[0]?.approval.id === 'a2')
  const second = client.addToolApprovalResponse({ id: 'a2', approved: true })
  server.release('stream 2')
  expect(await second).toEqual({ status: 'sent' })
  expect(server.requests).toHaveLength(3)
})
