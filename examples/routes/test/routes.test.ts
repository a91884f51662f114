import { ChatClient, fetchServerSentEvents, postAnswers, withGrants } from '@countersign/client'
import { type AGUIEvent, type RunAgentInput, readServerSentEvents } from '@countersign/core'
import { createAgent, type Model, memoryLedger, tool } from '@countersign/server'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import type { RouteParts } from '../src/parts.js'
import { Sessions, sessionCookie } from '../src/sessions.js'
import { frameworks } from './serve.js'

const SECRET = 'a secret of these tests, more than 32 bytes'
const foreign = { origin: 'https://evil.example' }

/** A model that sends a mail when it is told to `mail`, and else speaks; the second half of what it says waits for `goOn`. */
function talkative() {
  let goOn = () => {}
  const waited = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const model: Model = {
    id: 'scripted/talkative',
    async *stream({ messages }) {
      const said = JSON.stringify(messages.at(-1))
      if (said.includes('mail') && messages.at(-1)?.role === 'user') {
        yield { type: 'tool-call', id: `c${messages.length}`, name: 'send_mail', arguments: '{"to":"team"}' }
      } else {
        yield { type: 'text-delta', delta: 'first ' }
        if (said.includes('slowly')) await waited
        yield { type: 'text-delta', delta: 'second' }
      }
      yield { type: 'finish', reason: 'stop' }
    },
  }
  return { model, goOn: () => goOn() }
}

/** The routes of a framework, with two people who are signed in. */
async function open(framework: string, more: Partial<RouteParts> = {}) {
  const sent: { to: string; by: unknown }[] = []
  const mail = tool({
    name: 'send_mail',
    description: 'Sends a mail.',
    input: z.object({ to: z.string() }),
    needsApproval: true,
    scopes: ['once', 'session'],
    execute: ({ to }, { context }) => {
      sent.push({ to, by: context.subject })
      return 'sent'
    },
  })
  const { model, goOn } = talkative()
  const approvals = { secret: SECRET, ledger: memoryLedger() }
  const agent = createAgent({ model, tools: [mail], approvals, warn: () => {} })
  const sessions = new Sessions()
  const serve = frameworks[framework]
  if (serve === undefined) throw new Error(`There is no ${framework}.`)
  const { url, server } = await serve({ agent, sessions, origins: [], live: false, ...more })
  onTestFinished(goOn)
  const headers = (user: string) => ({ authorization: `Bearer ${sessions.open(user)}` })
  const [ann, bob] = [headers('ann'), headers('bob')]
  const chat = (who: Record<string, string>, live = false): ChatClient => {
    const sse = fetchServerSentEvents(`${url}/api/chat`, { headers: who, rejoin: true })
    const connection = withGrants(sse, `${url}/api/grants`, { headers: who })
    const answers = live ? postAnswers(`${url}/api/chat/answers`, { headers: who }) : {}
    const client = new ChatClient({ connection: { ...connection, ...answers }, threadId: 'thread' })
    onTestFinished(client.dispose)
    return client
  }
  const post = (path: string, who: Record<string, string>, body: unknown, signal?: AbortSignal) =>
    fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...who },
      body: JSON.stringify(body),
      ...(signal && { signal }),
    })
  return { url, server, agent, sent, goOn, sessions, ann, bob, chat, post }
}

let runs = 0

function input(text: string, more: Partial<RunAgentInput> = {}): RunAgentInput {
  return {
    threadId: 'thread',
    runId: `run-${++runs}`,
    protocolVersion: '1.0',
    messages: [{ id: 'u1', role: 'user', content: text }],
    tools: [],
    context: [],
    state: {},
    forwardedProps: {},
    ...more,
  }
}

async function* eventsOf(response: Response): AsyncGenerator<AGUIEvent> {
  if (response.body === null) throw new Error(`${response.status}`)
  for await (const batch of readServerSentEvents(response.body))
    for (const { data } of batch) yield data as AGUIEvent
}

async function allOf(response: Response): Promise<AGUIEvent[]> {
  const events: AGUIEvent[] = []
  for await (const event of eventsOf(response)) events.push(event)
  return events
}

function textOf(client: ChatClient): string {
  const parts = client.getSnapshot().messages.at(-1)?.parts ?? []
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

function pending(client: ChatClient): string {
  return client.getSnapshot().pendingApprovals[0]?.approval?.id ?? ''
}

const names = Object.keys(frameworks)

test.each(names)('%s: a chat, a question and its answer with the next request', async (name) => {
  const { sent, ann, chat } = await open(name)
  const client = chat(ann)
  await client.sendMessage('hello')
  expect(textOf(client)).toBe('first second')
  await client.sendMessage('send a mail')
  expect(sent).toEqual([])
  expect(await client.addToolApprovalResponse({ id: pending(client), approved: true })).toEqual({
    status: 'sent',
  })
  expect(sent).toEqual([{ to: 'team', by: 'ann' }])
  expect(textOf(client)).toContain('first second')
})

test.each(names)('%s: an answer into the run that waits for it', async (name) => {
  const { sent, ann, chat } = await open(name, { live: true })
  const client = chat(ann, true)
  const run = client.sendMessage('send a mail')
  await expect.poll(() => pending(client)).not.toBe('')
  await client.addToolApprovalResponse({ id: pending(client), approved: true })
  await run
  expect(sent).toEqual([{ to: 'team', by: 'ann' }])
})

test.each(names)("%s: another person's answer is refused at both doors", async (name) => {
  const { sent, ann, bob, chat, post } = await open(name, { live: true })
  const client = chat(ann, true)
  const run = client.sendMessage('send a mail')
  await expect.poll(() => pending(client)).not.toBe('')
  const part = client.getSnapshot().pendingApprovals[0]
  const runId = client.inspect().openRun ?? ''
  const resume = [
    {
      interruptId: pending(client),
      status: 'resolved' as const,
      payload: { approved: true },
      metadata: { countersign: { token: part?.approval?.token } },
    },
  ]
  const live = await post('/api/chat/answers', bob, { threadId: 'thread', runId, resume })
  expect(live.status).toBe(409)
  const call = {
    id: part?.id ?? '',
    type: 'function' as const,
    function: { name: 'send_mail', arguments: '{"to":"team"}' },
    metadata: { countersign: { token: part?.approval?.token, approval: { id: pending(client) } } },
  }
  const messages = [
    { id: 'u1', role: 'user' as const, content: 'send a mail' },
    { id: 'a1', role: 'assistant' as const, toolCalls: [call] },
  ]
  const events = await allOf(await post('/api/chat', bob, input('', { messages, resume })))
  expect(events).toContainEqual(
    expect.objectContaining({
      name: 'approval-refused',
      value: expect.objectContaining({ code: 'approval-not-yours' }),
    }),
  )
  expect(sent).toEqual([])
  await client.addToolApprovalResponse({ id: pending(client), approved: true })
  await run
  expect(sent).toEqual([{ to: 'team', by: 'ann' }])
})

test.each(names)('%s: nobody gets past any route without a session, whatever the body says', async (name) => {
  const { url, sent, post, sessions, ann } = await open(name)
  const given = { ...input('send a mail'), forwardedProps: { subject: 'ann' }, context: [], subject: 'ann' }
  const ended = sessions.open('ann')
  sessions.end(ended)
  const nobodies: Record<string, string>[] = [
    {},
    { authorization: 'Bearer made-up' },
    { authorization: `Bearer ${ended}` },
    { cookie: 'session=made-up' },
    { 'x-user': 'ann', 'x-forwarded-user': 'ann' },
  ]
  for (const who of nobodies) {
    expect((await post('/api/chat', who, given)).status).toBe(401)
    expect(
      (await post('/api/chat/answers', who, { threadId: 'thread', runId: 'r', resume: [] })).status,
    ).toBe(401)
    for (const path of ['/api/chat?threadId=thread&runId=r', '/api/grants?threadId=thread'])
      expect((await fetch(`${url}${path}`, { headers: who })).status).toBe(401)
    expect(
      (await fetch(`${url}/api/grants?threadId=thread`, { method: 'DELETE', headers: who })).status,
    ).toBe(401)
  }
  expect(sent).toEqual([])
  const cookie = { cookie: `theme=dark; ${sessionCookie(ann.authorization.slice(7)).split(';')[0]}` }
  expect((await post('/api/chat', cookie, input('hello'))).status).toBe(200)
})

test.each(names)('%s: what the model says arrives while it speaks', async (name) => {
  const { goOn, ann, post } = await open(name)
  const response = await post('/api/chat', ann, input('slowly'))
  expect(response.headers.get('content-type')).toContain('text/event-stream')
  let text = ''
  for await (const event of eventsOf(response)) {
    if (event.type !== 'TEXT_MESSAGE_CONTENT') continue
    text += event.delta
    // the model does not go on before this has arrived
    if (text === 'first ') goOn()
  }
  expect(text).toBe('first second')
})

test.each(names)(
  '%s: a reader who goes away leaves the run, takes it up later, and nobody else does',
  async (name) => {
    const { url, goOn, ann, bob, post } = await open(name)
    const leaving = new AbortController()
    const given = input('slowly')
    const events = eventsOf(await post('/api/chat', ann, given, leaving.signal))
    while ((await events.next()).value?.type !== 'TEXT_MESSAGE_CONTENT');
    leaving.abort()
    await events.next().catch(() => {})
    const query = `threadId=thread&runId=${given.runId}`
    const others = await fetch(`${url}/api/chat?${query}`, { headers: bob })
    expect(others.status).toBe(204)
    const rest = fetch(`${url}/api/chat?${query}`, {
      headers: { ...ann, 'last-event-id': `${given.runId}:1` },
    })
    goOn()
    const text = (await allOf(await rest)).flatMap((event) =>
      event.type === 'TEXT_MESSAGE_CONTENT' ? [event.delta] : [],
    )
    expect(text.join('')).toBe('first second')
  },
)

test.each(names)('%s: session approvals are seen and ended by their person only', async (name) => {
  const { sent, ann, bob, chat } = await open(name)
  const client = chat(ann)
  await client.sendMessage('send a mail')
  await client.addToolApprovalResponse({ id: pending(client), approved: true, scope: 'session' })
  await client.sendMessage('another mail')
  expect(sent).toHaveLength(2)
  expect(await chat(bob).grants()).toEqual([])
  expect(await client.grants()).toMatchObject([{ toolName: 'send_mail' }])
  const [grant] = await client.grants()
  expect(await client.revokeGrant(grant?.id ?? '')).toBe(1)
  await client.sendMessage('a third mail')
  expect(sent).toHaveLength(2)
  expect(pending(client)).not.toBe('')
})

test.each(names)('%s: a page of another origin is answered by name, or not at all', async (name) => {
  const friend = { origin: 'https://chat.example.org' }
  const { url, ann, post } = await open(name, { origins: [friend.origin] })
  const grants = (headers: Record<string, string>) =>
    fetch(`${url}/api/grants?threadId=thread`, { headers: { ...ann, ...headers } })
  expect([(await grants(foreign)).status, (await grants({ origin: url })).status]).toEqual([403, 200])
  const answer = await post(
    '/api/chat/answers',
    { ...ann, ...foreign },
    { threadId: 't', runId: 'r', resume: [] },
  )
  expect(answer.status).toBe(403)
  const readable = async (response: Promise<Response>) => {
    const { headers } = await response
    return headers.get('access-control-allow-origin')
  }
  expect(await readable(grants(friend))).toBe(friend.origin)
  expect(await readable(post('/api/chat', { ...ann, ...friend }, input('hello')))).toBe(friend.origin)
  for (const path of ['/api/chat', '/api/chat/answers', '/api/grants']) {
    const preflight = (headers: Record<string, string>) =>
      fetch(`${url}${path}`, {
        method: 'OPTIONS',
        headers: {
          ...headers,
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'content-type',
        },
      })
    const allowed = await preflight(friend)
    expect([allowed.status, await readable(Promise.resolve(allowed))]).toEqual([204, friend.origin])
    expect(await readable(preflight(foreign))).toBeNull()
  }
  for (const response of [
    grants(foreign),
    post('/api/chat', { ...ann, ...foreign }, input('hello')),
    post('/api/chat', foreign, {}),
  ])
    expect(await readable(response)).toBeNull()
})

test.each(names)(
  '%s: a server that closes in the moment in which its agent has drained has sent the end of the run',
  async (name) => {
    const { agent, server, goOn, ann, post } = await open(name)
    const events = eventsOf(await post('/api/chat', ann, input('speak slowly')))
    const types: string[] = []
    for (let isDraining = false; ; ) {
      const { done, value } = await events.next()
      if (done) break
      types.push(value.type)
      if (value.type !== 'TEXT_MESSAGE_CONTENT' || isDraining) continue
      isDraining = true
      void agent.drain().then(() => server.closeAllConnections())
      goOn()
    }
    expect(types.at(-1)).toBe('RUN_FINISHED')
  },
)
