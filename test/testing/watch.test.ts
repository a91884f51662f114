import { ChatClient } from '@countersign/client'
import { gated, resolve, scriptedConnection, text, watch } from '@countersign/testing'
import { expect, test } from 'vitest'

async function open() {
  const server = scriptedConnection([gated(1), [resolve(), text('Done.')]])
  const client = new ChatClient({ connection: server })
  return { client, server, acts: () => server.timeline.entries.filter(({ kind }) => kind === 'act') }
}

test('what a component does is recorded, although it acts on the client itself', async () => {
  const { client, server, acts } = await open()
  watch(client, server.timeline)
  await client.sendMessage('Delete 1.log')
  await client.actions.addToolApprovalResponse({ id: 'a1', approved: true })
  expect(acts()).toMatchObject([
    { text: 'sendMessage "Delete 1.log"' },
    { text: 'addToolApprovalResponse {"id":"a1","approved":true}' },
  ])
})

test('an action that is refused is recorded too', async () => {
  const { client, server, acts } = await open()
  watch(client, server.timeline)
  await client.addToolApprovalResponse({ id: 'unknown', approved: true })
  expect(acts()).toMatchObject([{ text: 'addToolApprovalResponse {"id":"unknown","approved":true}' }])
})

test('nothing is recorded after the watching has stopped', async () => {
  const { client, server, acts } = await open()
  const stop = watch(client, server.timeline)
  stop()
  await client.sendMessage('Delete 1.log')
  expect(acts()).toEqual([])
  expect(server.timeline.print()).not.toContain('state')
})
