import { approvalQueue, ChatClient, type UIMessage } from '@countersign/client'
import { expect, test, vi } from 'vitest'
import { gated, hold, resolve, scriptedConnection, text, until } from '../../testing/src/index.js'

/** A chat with so many requests that wait. */
async function waiting(count: number) {
  const server = scriptedConnection([
    Array.from({ length: count }, (_, at) => gated(at + 1)).flat(),
    [resolve(), text('Done.')],
  ])
  const client = new ChatClient({ connection: server, notify: 'sync', threadId: 't' })
  await client.sendMessage('tidy up')
  const queue = approvalQueue(client)
  const seen = () => {
    const { current, count, position, dismissed } = queue.getSnapshot()
    return [current?.id, position, count, dismissed.map(({ id }) => id)]
  }
  const answer = (id: string, approved = true) => client.addToolApprovalResponse({ id, approved })
  return { server, client, queue, seen, answer }
}

test('S3.94 requests are shown in the order they were asked, with their number', async () => {
  const { seen, answer, server } = await waiting(3)
  expect(seen()).toEqual(['c1', 1, 3, []])
  await answer('a1')
  expect(seen()).toEqual(['c2', 1, 2, []])
  await answer('a2', false)
  expect([seen(), server.requests.length]).toEqual([['c3', 1, 1, []], 1])
  await answer('a3')
  expect([seen(), server.requests.length]).toEqual([[undefined, 0, 0, []], 2])
})

test('S3.94 next goes round; a request answered out of turn leaves the others as they are', async () => {
  const { queue, seen, answer } = await waiting(3)
  queue.next()
  expect(seen()).toEqual(['c2', 2, 3, []])
  await answer('a2')
  expect(seen()).toEqual(['c1', 1, 2, []])
  queue.next()
  queue.next()
  expect(seen()).toEqual(['c1', 1, 2, []])
  queue.next()
  expect(seen()).toEqual(['c3', 2, 2, []])
  await answer('a1')
  expect(seen()).toEqual(['c3', 1, 1, []])
})

test('S3.95 dismissing is not denying: it goes on waiting, nothing is sent, and it can be reopened', async () => {
  const { client, queue, seen, server } = await waiting(2)
  const before = client.getSnapshot()
  queue.dismiss()
  expect(seen()).toEqual(['c2', 2, 2, ['c1']])
  queue.dismiss()
  expect(seen()).toEqual([undefined, 0, 2, ['c1', 'c2']])
  queue.next()
  expect(seen()).toEqual([undefined, 0, 2, ['c1', 'c2']])
  expect([client.getSnapshot() === before, before.status, server.requests.length]).toEqual([
    true,
    'awaiting-approval',
    1,
  ])
  queue.reopen('a2')
  expect(seen()).toEqual(['c2', 2, 2, ['c1']])
  queue.reopen()
  expect(seen()).toEqual(['c1', 1, 2, []])
})

test('S3.95 a dismissed request can be dismissed and answered by its id; ids that do not wait do nothing', async () => {
  const { queue, seen, answer } = await waiting(3)
  queue.dismiss('a2')
  queue.dismiss('no such id')
  queue.reopen('no such id')
  expect(seen()).toEqual(['c1', 1, 3, ['c2']])
  await answer('a2')
  expect(seen()).toEqual(['c1', 1, 2, []])
})

test('S3.95 a request that comes after others were dismissed is shown', async () => {
  const server = scriptedConnection([[gated(1), hold(), gated(2)]])
  const client = new ChatClient({ connection: server, notify: 'sync' })
  const queue = approvalQueue(client)
  const sent = client.sendMessage('tidy up')
  await until(client, ({ pendingApprovals }) => pendingApprovals.length === 1)
  queue.dismiss()
  expect(queue.getSnapshot().current).toBeUndefined()
  server.release()
  await sent
  expect(queue.getSnapshot()).toMatchObject({ current: { id: 'c2' }, count: 2, position: 2 })
})

test('S3.96 the queue is that of the messages: after a reload it is back, without what was answered', async () => {
  const { client, queue, answer } = await waiting(3)
  queue.dismiss()
  await answer('a2')
  const initialMessages: readonly UIMessage[] = structuredClone(client.getSnapshot().messages)
  const reloaded = approvalQueue(new ChatClient({ connection: scriptedConnection([]), initialMessages }))
  expect(reloaded.getSnapshot()).toMatchObject({
    current: { id: 'c1' },
    count: 2,
    dismissed: [],
  })
})

test('S3.96 two chats have two queues, and pages of one chat share what was dismissed', async () => {
  const [one, two] = [await waiting(1), await waiting(1)]
  one.queue.dismiss()
  expect(approvalQueue(one.client)).toBe(one.queue)
  expect([one.queue.getSnapshot().current, two.queue.getSnapshot().current?.id]).toEqual([undefined, 'c1'])
})

test('S3.96 no stale prompt: what is closed elsewhere is gone', async () => {
  const { client, queue, seen } = await waiting(2)
  queue.next()
  client.clear()
  expect(seen()).toEqual([undefined, 0, 0, []])
})

test('S3.97 the same request by event and by interrupt is one, and growth of texts changes nothing', async () => {
  const server = scriptedConnection([[gated(1), text('I', ' would', ' like', ' to')]])
  const client = new ChatClient({ connection: server, notify: 'sync' })
  const queue = approvalQueue(client)
  const listener = vi.fn()
  queue.subscribe(listener)
  await client.sendMessage('tidy up')
  expect([queue.getSnapshot().count, listener.mock.calls.length]).toEqual([1, 1])
})

test('the snapshot is the same object until it changes, and listeners hear of changes only', async () => {
  const { queue, answer } = await waiting(2)
  const [first, second] = [vi.fn(), vi.fn()]
  const leave = queue.subscribe(first)
  queue.subscribe(second)
  const before = queue.getSnapshot()
  queue.dismiss('no such id')
  queue.reopen()
  expect([queue.getSnapshot() === before, first.mock.calls.length]).toEqual([true, 0])
  queue.dismiss()
  expect([queue.getSnapshot() === before, first.mock.calls.length]).toEqual([false, 1])
  leave()
  await answer('a2')
  expect([first.mock.calls.length, second.mock.calls.length]).toEqual([1, 2])
})

test('S4.89 the server snapshot is that of the beginning, with nothing dismissed', async () => {
  const { client } = await waiting(1)
  const initialMessages: readonly UIMessage[] = structuredClone(client.getSnapshot().messages)
  const served = new ChatClient({ connection: scriptedConnection([]), initialMessages })
  const queue = approvalQueue(served)
  queue.dismiss()
  expect(queue.getServerSnapshot()).toMatchObject({ current: { id: 'c1' }, dismissed: [] })
  expect(queue.getServerSnapshot()).toBe(queue.getServerSnapshot())
})
