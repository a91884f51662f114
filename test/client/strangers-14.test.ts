import { tool } from '@countersign/server'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { memoryPersistence } from './fake-browser.js'
import { failOnUnhandledRejections } from './open-chat.js'
import { calls, openPage, startServerWith, stop, words } from './threads-server.js'

failOnUnhandledRejections()

// What another stranger found.

const pending = ({ client }: Pick<ReturnType<typeof openPage>, 'client'>) =>
  client.getSnapshot().pendingApprovals.map(({ approval }) => approval.id)

test('P after a reload, a stored yes does not hide that the server asks anew about the call, and never goes out for it', async () => {
  const ran: string[] = []
  let balance = 0
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({ to: z.string() }),
    needsApproval: true,
    preview: async () => ({ kind: 'text', text: `balance ${balance}` }),
    execute: ({ to }) => {
      ran.push(`${to} at ${balance}`)
      return 'paid'
    },
  })
  const server = startServerWith(
    { tools: [pay] },
    () => calls('pay', { to: 'ann' }),
    () => [words('End.'), stop],
  )
  const local = memoryPersistence()
  const first = openPage(server, { local, attempts: 1 })
  await first.client.sendMessage('Pay ann')
  const [old = ''] = pending(first)
  first.network.isUp = false
  const answered = await first.client.addToolApprovalResponse({ id: old, approved: true })
  expect(answered).toMatchObject({ status: 'failed' })
  await vi.waitUntil(async () => (await local.load('t'))?.messages.length)
  first.leave()

  const other = openPage(server)
  await vi.waitUntil(() => pending(other).length > 0)
  balance = 1
  await other.client.addToolApprovalResponse({ id: old, approved: true })
  const [anew = ''] = pending(other)
  expect(anew).not.toBe(old)

  const warnings: string[] = []
  const reloaded = openPage(server, { local }, { onWarning: (warning) => warnings.push(warning) })
  await vi.waitUntil(() => reloaded.client.getSnapshot().messages.length > 0)
  const fresh = openPage(server)
  await vi.waitUntil(() => pending(fresh).length > 0)
  expect(pending(fresh)).toEqual([anew])
  expect(pending(reloaded)).toEqual([anew])
  expect(warnings).toEqual([expect.stringContaining(old)])
  expect(await reloaded.client.addToolApprovalResponse({ id: old, approved: true })).toMatchObject({
    status: expect.stringMatching(/^(closed|not-found)$/),
  })
  await reloaded.client.retry()
  expect(pending(reloaded)).toEqual([anew])
  expect(ran).toEqual([])
  expect(reloaded.requests.filter(({ method }) => method === 'POST')).toEqual([])
  expect(await reloaded.client.addToolApprovalResponse({ id: anew, approved: true })).toEqual({
    status: 'sent',
  })
  expect(ran).toEqual(['ann at 1'])
})
