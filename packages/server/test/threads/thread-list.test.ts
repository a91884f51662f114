import { createServer, type RequestListener } from 'node:http'
import {
  createAgent,
  handleChat,
  memoryLedger,
  memoryRunLog,
  memoryThreads,
  type RunContext,
  scriptedModel,
  threadResponse,
} from '@countersign/server'
import { toNodeHandler } from '@countersign/server/node'
import { expect, test } from 'vitest'
import { listening } from '../../../../test/engine/listening.js'

// The route lists a user's conversations, renames and removes them.

function setUp() {
  const times = { now: 1000 }
  const ledger = memoryLedger()
  const agent = createAgent({
    model: scriptedModel(async function* () {
      yield { type: 'text-delta', delta: 'Yes.' }
      yield { type: 'finish', reason: 'stop' }
    }),
    threads: memoryThreads({ now: () => times.now }),
    runLog: memoryRunLog(),
    approvals: { ledger, secret: 'only for this test, 32 bytes long!' },
  })
  /** One user says something in a conversation. */
  async function say(threadId: string, content: unknown, context: RunContext = { subject: 'ann' }) {
    times.now++
    const input = { threadId, runId: `run-${times.now}`, tools: [], context: [] }
    const messages = [{ id: `m-${times.now}`, role: 'user', content }]
    const request = new Request('http://test/', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...input, messages }),
    })
    await (await handleChat(agent, request, { context })).text()
  }
  async function ask(method: string, query = '', body?: unknown, subject = 'ann') {
    const init = { method, ...(body !== undefined && { body: JSON.stringify(body) }) }
    const response = await threadResponse(agent, new Request(`http://test/?${query}`, init), {
      context: { subject },
    })
    const text = await response.text()
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
  }
  const titles = async (query = '', subject = 'ann') =>
    (await ask('GET', query, undefined, subject)).body.threads.map(({ title }: { title: string }) => title)
  return { agent, ledger, say, ask, titles }
}

test('T5: a conversation is named by its first message, and listed by its last activity, page by page', async () => {
  const { say, ask, titles } = setUp()
  await say('a', `  One\n two ${'long '.repeat(40)}`)
  await say('b', [{ type: 'text', text: 'Picture' }])
  await say('c', 'Three')
  await say('b', 'And more')
  await say('x', 'Not yours', { subject: 'bob' })
  expect(await titles()).toEqual(['Picture', 'Three', expect.stringMatching(/^One two long .{50,}…$/)])

  const first = await ask('GET', 'limit=2')
  expect(first.body.threads).toMatchObject([{ threadId: 'b', isRunning: false }, { threadId: 'c' }])
  const rest = await ask('GET', `limit=2&cursor=${encodeURIComponent(first.body.cursor)}`)
  expect([rest.body.threads.length, rest.body.cursor]).toEqual([1, undefined])
  for (const query of ['limit=0', 'limit=1001', 'limit=x', 'cursor=nonsense'])
    expect((await ask('GET', query)).status, query).toBe(400)
})

test('T5: a conversation is renamed and removed, with its session approvals, by its own user only', async () => {
  const { agent, ledger, say, ask, titles } = setUp()
  await say('a', 'One')
  await say('b', 'Two')
  expect((await ask('PATCH', 'threadId=a', { title: 'New name' })).status).toBe(204)
  expect((await ask('PATCH', 'threadId=a', { title: 'Stolen' }, 'bob')).status).toBe(404)
  for (const body of [{}, { title: 1 }, { title: 'x'.repeat(1025) }, null])
    expect((await ask('PATCH', 'threadId=a', body)).status).toBe(400)
  await say('a', 'More')
  expect(await titles()).toEqual(['New name', 'Two'])

  for (const threadId of ['a', 'b'])
    await ledger.grant({ owner: 'ann', threadId, toolName: 'move', scopeKey: 'move', approved: true })
  expect((await ask('DELETE', 'threadId=a', undefined, 'bob')).status).toBe(204)
  expect(await titles()).toHaveLength(2)
  expect((await ask('DELETE', 'threadId=a')).status).toBe(204)
  expect(await titles()).toEqual(['Two'])
  expect((await ask('GET', 'threadId=a')).status).toBe(404)
  expect(await agent.grants.list('ann')).toMatchObject([{ threadId: 'b' }])
  expect((await ask('DELETE', 'threadId=a')).status, 'again').toBe(204)
  expect((await ask('PUT', 'threadId=b')).status).toBe(405)
})

test('T5: toNodeHandler lists, renames and removes', async () => {
  const { agent, say } = setUp()
  await say('a', 'One')
  const handle = toNodeHandler(agent, { context: () => ({ subject: 'ann' }) })
  const listener: RequestListener = (request, response) => void handle(request, response)
  const url = `http://${await listening(createServer(listener))}/`
  const renamed = await fetch(`${url}?threadId=a`, { method: 'PATCH', body: '{"title":"New name"}' })
  const listed = await fetch(url)
  expect([renamed.status, await listed.json()]).toMatchObject([204, { threads: [{ title: 'New name' }] }])
  expect((await fetch(`${url}?threadId=a`, { method: 'DELETE' })).status).toBe(204)
  expect(await (await fetch(url)).json()).toEqual({ threads: [] })
})

test('T1: without threads, there is no list', async () => {
  const model = scriptedModel(async function* () {})
  const handle = toNodeHandler(createAgent({ model, warn: () => {} }))
  const listener: RequestListener = (request, response) => void handle(request, response)
  const url = `http://${await listening(createServer(listener))}/`
  for (const [method, query] of [
    ['GET', ''],
    ['PATCH', '?threadId=a'],
    ['DELETE', '?threadId=a'],
  ] as const)
    expect((await fetch(url + query, { method })).status, method).toBe(405)
})
