import { ChatClient, nextStep } from '@countersign/client'
import { persistent } from '@countersign/client/persistence'
import { cut, gated, resolve, scriptedConnection, started, text } from '@countersign/testing'
import { expect, test } from 'vitest'
import { memoryPersistence } from './fake-browser.js'
import { callOf, openClient, pendingId } from './open-chat.js'
import { pay, payServer } from './pay-server.js'

// Answers that may have arrived: the reply to their request was lost.

test('an answer that came in time and whose reply was lost has its outcome, also once the time to answer is over', async () => {
  let now = Date.parse('2026-11-23T12:00:00Z')
  let ran = 0
  const { connection, loseReplies } = payServer({
    now: () => now,
    approvals: { expiresIn: 60 },
    tools: [pay.server(() => `paid ${++ran}`)],
  })
  const client = new ChatClient({ connection, now: () => now })
  await client.sendMessage('go')
  loseReplies(1)
  expect(await client.addToolApprovalResponse({ id: pendingId(client), approved: true })).toMatchObject({
    status: 'failed',
  })
  now += 120_000
  await client.retry()
  expect(ran).toBe(1)
  expect(callOf(client, 'c1')).toMatchObject({ state: 'complete', output: 'paid 1' })
  expect(callOf(client, 'c1').approval?.problem).toBe(undefined)
})

const lost = [gated(1), [started(), cut()], [resolve(), text('Done.')]]

test.each([true, false])(
  'an answer that may have arrived is sent again by retry(), once (repeatsAnswers: %s)',
  async (repeatsAnswers) => {
    const stored = memoryPersistence()
    const connection = { ...scriptedConnection(lost), repeatsAnswers }
    const first = openClient({ connection, threadId: 't', persistence: persistent(stored, { saveEvery: 0 }) })
    await first.sendMessage('go')
    await first.addToolApprovalResponse({ id: 'a1', approved: true })
    expect(callOf(first, 'c1').approval?.delivery).toBe('unknown')
    first.dispose()
    const page = openClient({ connection, threadId: 't', persistence: persistent(stored) })
    await page.restore()
    expect(nextStep(callOf(page, 'c1'))).toMatchObject({ state: 'kept', next: 'retry' })
    await page.retry()
    expect(connection.requests).toHaveLength(3)
    await page.retry()
    expect(connection.requests).toHaveLength(3)
    expect(callOf(page, 'c1')).toMatchObject({ state: 'complete', approval: { delivery: 'settled' } })
  },
)

test('an answer that may be lost stays so when a later run says nothing about it, and retry() sends it', async () => {
  const connection = scriptedConnection([gated(1), [started(), cut()], [text('Hello.')], [resolve()]])
  const client = openClient({ connection, threadId: 't' })
  await client.sendMessage('go')
  await client.addToolApprovalResponse({ id: 'a1', approved: true })
  await client.sendMessage('are you there?')
  expect(client.getSnapshot().status).toBe('ready')
  expect(callOf(client, 'c1').approval?.delivery).toBe('unknown')
  await client.retry()
  expect(connection.requests.at(-1)?.resume).toMatchObject([{ interruptId: 'a1' }])
  expect(callOf(client, 'c1').state).toBe('complete')
})
