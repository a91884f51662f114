import { loadThread } from '@countersign/server'
import { expect, test, vi } from 'vitest'
import { calls, openPage, startServer } from './threads-server.js'

const cardOf = ({ client }: ReturnType<typeof openPage>) =>
  client.getSnapshot().pendingApprovals[0]?.approval.id ?? ''

const stateOf = ({ client }: ReturnType<typeof openPage>) =>
  client
    .getSnapshot()
    .messages.flatMap(({ parts }) => parts)
    .find((part) => part.type === 'tool-call')?.state

/** A page that answers while its server is away, and is reloaded. */
async function answeredInVain() {
  const server = startServer(() => calls('send', { to: 'ada' }))
  const page = openPage(server)
  await page.client.sendMessage('Send it')
  page.network.isUp = false
  await page.client.addToolApprovalResponse({ id: cardOf(page), approved: true })
  const { error } = page.client.getSnapshot()
  page.leave()
  return { server, local: page.local, error }
}

test('after a reload, a page still shows why an answer was not sent, and retry() sends it', async () => {
  const { server, local, error } = await answeredInVain()
  expect(error).toMatchObject({ code: 'connection-failed' })
  const page = openPage(server, { local })
  await vi.waitUntil(() => stateOf(page) === 'approval-responded')
  expect(page.client.getSnapshot()).toMatchObject({
    status: 'error',
    error: { code: error?.code, message: error?.message },
  })
  await page.client.retry()
  expect(page.client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
  expect([server.executed, stateOf(page)]).toEqual([['ada'], 'complete'])
})

test('the same for a page whose conversation was loaded on the server', async () => {
  const { server, local, error } = await answeredInVain()
  const initialThread = await loadThread(server.agent, { subject: 'ada', threadId: 't' })
  const page = openPage(server, { local }, initialThread && { initialThread })
  await vi.waitUntil(() => stateOf(page) === 'approval-responded')
  expect(page.client.getSnapshot().error).toMatchObject({ code: error?.code })
  await page.client.sendMessage('and?')
  expect(page.client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
  expect(server.executed).toEqual(['ada'])
})

test('a failure is not shown once the answer has arrived from elsewhere', async () => {
  const { server, local } = await answeredInVain()
  const other = openPage(server)
  await vi.waitUntil(() => cardOf(other) !== '')
  await other.client.addToolApprovalResponse({ id: cardOf(other), approved: true })
  const page = openPage(server, { local })
  await vi.waitUntil(() => stateOf(page) === 'complete')
  expect(page.client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
  expect(server.executed).toEqual(['ada'])
})
