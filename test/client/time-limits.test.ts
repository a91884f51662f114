import { ChatClient } from '@countersign/client'
import { persistent } from '@countersign/client/persistence'
import { tabs } from '@countersign/client/tabs'
import { clientTool } from '@countersign/core'
import { byHand, call, finish, gated, resolve, scriptedConnection, text } from '@countersign/testing'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { FakeBrowser, quiet } from './fake-browser.js'
import { callOf, failOnUnhandledRejections, saidBy } from './open-chat.js'

failOnUnhandledRejections()

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  onTestFinished(() => void vi.useRealTimers())
})

const pass = async (ms: number) => {
  await quiet()
  await vi.advanceTimersByTimeAsync(ms)
  await quiet()
}

const never = <T>() => new Promise<T>(() => {})

/** A leading tab with a conversation that was saved, and then frozen. */
async function frozenLeader() {
  const browser = new FakeBrowser()
  const server = scriptedConnection([gated(1), [resolve(), text('Done.')], [text('hi')]])
  const leader = browser.open(server)
  await pass(0)
  await leader.client.sendMessage('tidy up')
  await pass(3000)
  leader.freeze()
  return { browser, server, leader }
}

test('F31 a new tab beside a frozen one that leads shows what is stored', async () => {
  const { browser, server } = await frozenLeader()
  const tab = browser.open(server)
  await pass(4999)
  expect(tab.client.getMessageIds()).toHaveLength(0)
  await pass(1)
  expect(tab.client.getMessageIds()).toHaveLength(2)
  expect([tab.client.getSnapshot().status, tab.errors]).toEqual(['awaiting-approval', []])
})

test('F31 what a user does in it fails with a reason, and is not done when the frozen tab goes on', async () => {
  const { browser, server, leader } = await frozenLeader()
  const tab = browser.open(server)
  await pass(5000)
  const sent = tab.client.sendMessage('hello?')
  const answered = tab.client.addToolApprovalResponse({ id: 'a1', approved: true })
  const again = tab.client.retry()
  await pass(5000)
  const error = expect.objectContaining({
    code: 'connection-failed',
    message: expect.stringContaining('does not answer'),
  })
  expect([await sent, await answered]).toEqual([
    { status: 'refused', error },
    { status: 'failed', error },
  ])
  await again
  expect(tab.errors).toEqual(['connection-failed'])
  leader.thaw()
  await pass(0)
  expect([server.requests.length, tab.client.getSnapshot().status]).toEqual([1, 'awaiting-approval'])
  // It is there again: acts go their way.
  const result = tab.client.addToolApprovalResponse({ id: 'a1', approved: true })
  await pass(0)
  expect([await result, saidBy(tab.client)]).toEqual([{ status: 'sent' }, 'Done.'])
})

test('F31 an action that a tab has begun is waited for, however long it takes', async () => {
  const browser = new FakeBrowser()
  const server = scriptedConnection([byHand])
  const leader = browser.open(server)
  await pass(0)
  const tab = browser.open(server)
  await pass(0)
  const sent = tab.client.sendMessage('hello')
  const run = await server.request(1)
  await pass(600_000)
  expect([tab.errors, leader.errors, tab.client.getSnapshot().isLoading]).toEqual([[], [], true])
  run.emit(text('hi'), finish())
  await pass(0)
  expect(await sent).toEqual({ status: 'sent' })
})

test('F31 when the frozen tab is closed the new one leads and does what it is asked', async () => {
  const { browser, server, leader } = await frozenLeader()
  const tab = browser.open(server)
  await pass(5000)
  leader.close()
  await pass(0)
  const answered = tab.client.addToolApprovalResponse({ id: 'a1', approved: true })
  await pass(10_000)
  expect([await answered, saidBy(tab.client), tab.errors]).toEqual([{ status: 'sent' }, 'Done.', []])
})

test('F31 the option `timeout` of tabs is checked', () => {
  for (const timeout of [-1, Number.NaN, '5' as never])
    expect(() => tabs({ timeout })).toThrow(
      expect.objectContaining({ code: 'invalid-option', data: { option: 'timeout' } }),
    )
})

/** A chat over a storage of the test's own. */
function kept(storage: Partial<Parameters<typeof persistent>[0]>, timeout?: number) {
  const errors: string[] = []
  const server = scriptedConnection([[call('c1', 'locate')], [text('hi')], [text('hi')]])
  const save = vi.fn(storage.save ?? (async () => {}))
  const execute = vi.fn(() => 'Lisbon')
  const client = new ChatClient({
    connection: server,
    threadId: 't',
    notify: 'sync',
    tools: [clientTool({ name: 'locate', description: 'Where', input: z.object({}), execute })],
    onError: ({ code, message }) => errors.push(`${code}: ${message}`),
    persistence: persistent(
      { load: async () => undefined, remove: async () => {}, ...storage, save },
      timeout === undefined ? {} : { timeout },
    ),
  })
  onTestFinished(() => client.dispose())
  return { client, server, save, errors, execute }
}

test('F31 a load that never settles is given up: the chat goes on, and writes over nothing', async () => {
  const { client, server, save, errors } = kept({ load: never })
  const sent = client.sendMessage('hello')
  await pass(9999)
  expect(server.requests).toEqual([])
  await pass(1)
  expect(await sent).toEqual({ status: 'sent' })
  await pass(60_000)
  expect(errors).toEqual([
    expect.stringMatching(/^persistence-unavailable: The storage did not answer within 10000 ms/),
  ])
  expect(save).not.toHaveBeenCalled()
  expect(vi.getTimerCount()).toBe(0)
})

test('F31 a save that never settles holds up nothing: a client tool is not run, and the model is told why', async () => {
  const { client, errors, execute } = kept({ save: never }, 500)
  await client.sendMessage('where am I?')
  await pass(5000)
  expect(execute).not.toHaveBeenCalled()
  expect(callOf(client, 'c1')).toMatchObject({ state: 'error', error: { code: 'not-stored' } })
  expect(errors).toEqual([expect.stringMatching(/did not answer within 500 ms/)])
})

test('F31 what a slow save held up is saved once it has settled, one save at a time', async () => {
  let underWay = 0
  const most: number[] = []
  const saved: string[] = []
  const { client, execute } = kept(
    {
      save: async (_, record) => {
        most.push(++underWay)
        await new Promise((done) => setTimeout(done, 3000))
        saved.push(JSON.stringify(record))
        underWay--
      },
    },
    500,
  )
  await client.sendMessage('where am I?')
  await pass(60_000)
  expect(execute).not.toHaveBeenCalled()
  expect(Math.max(...most)).toBe(1)
  expect(saved.at(-1)).toContain('not-stored')
  expect(saved.at(-1)).toContain('hi')
  expect(vi.getTimerCount()).toBe(0)
})

test('F31 the option `timeout` of a persistence is checked', () => {
  for (const timeout of [-1, Number.NaN, '5' as never])
    expect(() => kept({}, timeout)).toThrow(
      expect.objectContaining({ code: 'invalid-option', data: { option: 'timeout' } }),
    )
})
