import { createServer } from 'node:http'
import { ChatClient, fetchServerSentEvents, stream, withGrants } from '@countersign/client'
import { standingGrants } from '@countersign/client/ui'
import type { AGUIEvent } from '@countersign/core'
import {
  ApprovalCache,
  createAgent,
  type Ledger,
  memoryLedger,
  type ScriptedTurn,
  scriptedModel,
  tool,
} from '@countersign/server'
import { toNodeGrantsHandler, toNodeHandler } from '@countersign/server/node'
import { expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { call, calls, lastText, pendingId, says, states, type Wire, wires } from './engine.js'
import { listening } from './listening.js'

/** Who speaks; a header in the place of an application's own authentication. */
const ann = { 'x-user': 'ann' }

/** An agent whose mail tool may be approved for the session, and clients of it, one a thread. */
async function mailServer(wire: Wire, ledger: Ledger = memoryLedger()) {
  const sent: string[] = []
  const mail = tool({
    name: 'send_email',
    description: 'Sends a mail.',
    input: z.object({ to: z.string() }),
    needsApproval: true,
    scopes: ['once', 'session'],
    execute: ({ to }) => {
      sent.push(to)
      return 'sent'
    },
  })
  let count = 0
  const mailOnce: Extract<ScriptedTurn, (...args: never[]) => unknown> = ({ messages }) =>
    messages.at(-1)?.role === 'user'
      ? calls(call(`c${++count}`, 'send_email', { to: `${count}@example.org` }))
      : says('It is sent.')
  const agent = createAgent({
    model: scriptedModel(mailOnce),
    tools: [mail],
    approvals: { ledger },
    warn: () => {},
  })
  const connectionFor = wire === 'sse' ? await served(agent) : inProcess(agent)
  const open = (threadId: string, headers: Readonly<Record<string, string>> = ann) => {
    const chat = new ChatClient({ connection: connectionFor(headers), threadId, headers })
    onTestFinished(chat.dispose)
    return chat
  }
  return { agent, open, sent, ledger }
}

type MailAgent = ReturnType<typeof createAgent>

function inProcess(agent: MailAgent) {
  return (headers: Readonly<Record<string, string>>) => {
    const subject = headers['x-user'] ?? ''
    return {
      ...stream((input, { signal }) => agent.run(input, { signal, context: { subject } })),
      grants: async ({ threadId }: { threadId: string }) =>
        (await agent.grants.list(subject, threadId)).map((grant) => ({
          ...grant,
          grantedAt: new Date(grant.grantedAt).toISOString(),
          expiresAt: new Date(grant.expiresAt).toISOString(),
        })),
      revokeGrant: ({ threadId, id }: { threadId: string; id?: string | undefined }) =>
        agent.grants.revoke(subject, { threadId, ...(id !== undefined && { id }) }),
    }
  }
}

async function served(agent: MailAgent) {
  const context = (request: { headers: Record<string, unknown> }) => ({
    subject: String(request.headers['x-user']),
  })
  const chats = toNodeHandler(agent, { context })
  const grants = toNodeGrantsHandler(agent, { context })
  const server = createServer((request, response) =>
    request.url?.startsWith('/grants') ? grants(request, response) : chats(request, response),
  )
  const base = `http://${await listening(server)}`
  return () => withGrants(fetchServerSentEvents(`${base}/`), `${base}/grants`)
}

for (const wire of wires) {
  test(`E.6 always, then the same tool twice more without being asked, then a new thread asks (${wire})`, async () => {
    const { open, sent } = await mailServer(wire)
    const chat = open('one')
    await chat.sendMessage('Mail.')
    await chat.addToolApprovalResponse({ id: pendingId(chat), approved: true, scope: 'session' })
    await chat.sendMessage('Again.')
    await chat.sendMessage('And again.')
    expect(states(chat)).toEqual(Array(3).fill('send_email:complete'))
    expect(sent).toEqual(['1@example.org', '2@example.org', '3@example.org'])
    expect(lastText(chat)).toBe('It is sent.')
    const other = open('two')
    await other.sendMessage('Mail.')
    expect(states(other)).toEqual(['send_email:approval-requested'])
    expect(sent.length).toBe(3)
  })

  test(`E.7 S3.124 always, listed and revoked by the user: with the same history it asks again (${wire})`, async () => {
    const { open, sent } = await mailServer(wire)
    const chat = open('one')
    expect(await chat.grants()).toEqual([])
    await chat.sendMessage('Mail.')
    await chat.addToolApprovalResponse({ id: pendingId(chat), approved: true, scope: 'session' })
    const [grant, ...more] = await chat.grants()
    expect(more).toEqual([])
    expect(grant).toMatchObject({ threadId: 'one', toolName: 'send_email' })
    expect(Date.parse(grant?.grantedAt ?? '')).toBeLessThanOrEqual(Date.now())
    expect(await open('one', { 'x-user': 'bob' }).grants()).toEqual([])
    expect(await open('one', { 'x-user': 'bob' }).revokeGrant(grant?.id)).toBe(0)
    expect(await open('two').grants()).toEqual([])
    expect(await chat.revokeGrant('another')).toBe(0)
    expect(await chat.revokeGrant(grant?.id)).toBe(1)
    expect(await chat.grants()).toEqual([])
    await chat.sendMessage('Again.')
    expect(states(chat)).toEqual(['send_email:complete', 'send_email:approval-requested'])
    expect(sent).toEqual(['1@example.org'])
  })

  test(`S3.124 without an id all grants of the thread end (${wire})`, async () => {
    const { open, ledger } = await mailServer(wire)
    const cache = new ApprovalCache({ ledger, subject: 'ann' })
    await cache.set('one', 'send_email', true)
    await cache.set('one', 'write', true)
    await cache.set('two', 'send_email', true)
    expect(await open('one').revokeGrant()).toBe(2)
    expect((await open('two').grants()).map(({ toolName }) => toolName)).toEqual(['send_email'])
  })
}

test('the list of standing approvals of an open page has what another page gave or revoked, once its user returns and after each of its runs', async () => {
  const browser = new EventTarget()
  for (const name of ['addEventListener', 'removeEventListener'] as const)
    vi.stubGlobal(name, browser[name].bind(browser))
  onTestFinished(() => void vi.unstubAllGlobals())
  const { open } = await mailServer('in-process')
  const [page, other] = [open('one'), open('one')]
  const list = standingGrants(other)
  const leave = list.subscribe(() => {})
  const listed = () => list.getSnapshot().grants.map(({ toolName }) => toolName)
  await page.sendMessage('Mail.')
  await page.addToolApprovalResponse({ id: pendingId(page), approved: true, scope: 'session' })
  expect(listed()).toEqual([])
  browser.dispatchEvent(new Event('focus'))
  await expect.poll(listed).toEqual(['send_email'])
  await page.revokeGrant()
  browser.dispatchEvent(new Event('visibilitychange'))
  await expect.poll(listed).toEqual([])
  await page.sendMessage('Mail again.')
  await page.addToolApprovalResponse({ id: pendingId(page), approved: true, scope: 'session' })
  await other.sendMessage('Mail from here.')
  await expect.poll(listed).toEqual(['send_email'])
  leave()
  await page.revokeGrant()
  const [before] = [list.getSnapshot()]
  browser.dispatchEvent(new Event('focus'))
  await new Promise((resolve) => setTimeout(resolve))
  expect(list.getSnapshot()).toBe(before)
})

async function* nothing(): AsyncGenerator<AGUIEvent> {}

test('S3.124 a connection without grants has none, and a server that cannot be asked is an error', async () => {
  const plain = new ChatClient({ connection: stream(nothing) })
  expect(await plain.grants()).toEqual([])
  expect(await plain.revokeGrant('x')).toBe(0)
  const answers = (response: () => Response) =>
    new ChatClient({
      connection: withGrants(stream(nothing), '/grants', { fetch: async () => response() }),
    })
  const closed = answers(() => new Response('no', { status: 403 }))
  await expect(closed.grants()).rejects.toMatchObject({ code: 'http-status', data: { status: 403 } })
  await expect(answers(() => new Response('<html>')).grants()).rejects.toMatchObject({
    code: 'empty-response',
  })
  expect(await answers(() => Response.json({ grants: [{ id: 1 }, null], revoked: 'x' })).grants()).toEqual([])
})
