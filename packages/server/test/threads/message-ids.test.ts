import type { AGUIEvent, Message, RunAgentInput } from '@countersign/core'
import {
  createAgent,
  handleChat,
  loadThread,
  memoryLedger,
  memoryThreads,
  type ScriptedTurn,
  scriptedModel,
} from '@countersign/server'
import { expect, test } from 'vitest'
import { call, counted, fold, requests, SECRET, say, user } from '../support.js'

// `generateId` belongs to the application. Whatever it returns, no message gets the id of another one of its thread.

const context = { subject: 'ann' }
const key = { owner: 'ann', threadId: 't' }

const counter = () => {
  let count = 0
  return () => `msg${++count}`
}

function setUp(turns: readonly ScriptedTurn[], generateId: () => string) {
  const threads = memoryThreads()
  const ledger = memoryLedger()
  const model = scriptedModel(turns)
  const note = counted('note', {
    execute: ({ id, text }, { write }) =>
      write({ type: 'data', id: String(id), name: 'note', data: { text } }),
  })
  const tools = [counted('send', { needsApproval: true }), counted('look'), counted('read'), note].map(
    (one) => one.tool,
  )
  const start = (newId: () => string) =>
    createAgent({
      model,
      tools,
      threads,
      generateId: newId,
      approvals: { secret: SECRET, ledger },
      warn() {},
    })
  let agent = start(generateId)
  let runs = 0
  return {
    run: async (messages: readonly Message[], page: object = {}, more: Partial<RunAgentInput> = {}) => {
      const input = { threadId: 't', runId: `run-${++runs}`, messages: [...messages], ...more }
      const events: AGUIEvent[] = []
      const forwardedProps = { countersign: page }
      for await (const event of agent.run({ ...input, forwardedProps, protocolVersion: '1.0' }, { context }))
        events.push(event)
      return events
    },
    show: (messageId: string) => agent.showVersion({ threadId: 't', messageId }, context),
    restart: (newId: () => string) => {
      agent = start(newId)
    },
    stored: async () =>
      ((await threads.load(key))?.messages ?? []).map(({ id, parent, message }) => {
        const { role, content }: Message = JSON.parse(message)
        return { id, parent, role, content }
      }),
    shown: async () =>
      (await loadThread(agent, { subject: 'ann', threadId: 't' }))?.messages.map(({ id }) => id),
  }
}

const said = (id: string, text: string): Message => ({ ...user(text), id })

const tools = [{ name: 'page', description: 'In the page.', parameters: { type: 'object' } }]

/** What a process that has just been started stores first in a conversation with an open call, by what its user does. */
const FIRST: Record<string, (chat: ReturnType<typeof setUp>) => Promise<unknown>> = {
  'a new message': ({ run }) => run([said('u4', 'Never mind.')]),
  'an edit': ({ run }) => run([said('u4', 'Never mind.')], { edit: 'u3' }),
  'a regeneration': ({ run }) => run([], { regenerate: 'u3' }),
  'another version': ({ show }) => show('u2'),
  'the result of a client tool': ({ run }) =>
    run([{ id: 'u1', role: 'tool', toolCallId: 'p1', content: 'done' }], {}, { tools }),
}

for (const [what, first] of Object.entries(FIRST))
  test(`a generateId that begins again with the process overwrites no stored message: ${what}`, async () => {
    const open = what.includes('client') ? call(['p1', 'page', {}]) : call(['c1', 'send', {}])
    const chat = setUp([say('One.'), say('Two.'), open, say('Three.')], counter())
    await chat.run([said('u1', 'Hi')])
    await chat.run([said('u2', 'Send it.')])
    await chat.run([said('u3', 'Send it now.')], { edit: 'u2' }, { tools })
    const before = await chat.stored()
    expect(before).toHaveLength(6)
    chat.restart(counter())
    await first(chat)
    const after = await chat.stored()
    expect(after.slice(0, before.length)).toEqual(before)
    expect(after.length).toBeGreaterThan(before.length)
    expect((await chat.shown())?.slice(0, 2)).toEqual(['u1', 'msg1'])
  })

test('a generateId that always returns the same still gives each message of a run an id of its own', async () => {
  const both = call(['c1', 'look', {}], ['c2', 'read', {}])
  const chat = setUp(
    [[{ type: 'text-delta', delta: 'First.' }, ...both], say('Then.'), say('Yes.')],
    () => 'm',
  )
  await chat.run([said('u1', 'Hi')])
  await chat.run([said('u2', 'Again')])
  const ids = (await chat.stored()).map(({ id }) => id)
  expect(ids).toEqual(['u1', 'm', 'm-2', 'm-3', 'm-4', 'u2', 'm-5'])
})

test('a generateId that always returns the same gets a random suffix once a hundred messages have the id', async () => {
  const chat = setUp([say('Hello.')], () => 'm')
  const uploaded = ['m', ...Array.from({ length: 120 }, (_, at) => `m-${at + 2}`)]
  await chat.run(uploaded.map((id) => said(id, 'Hi')))
  expect((await chat.stored()).at(-1)?.id).toMatch(/^m-[\w-]{22}$/)
})

test('the ids of a run without threads are none of its history', async () => {
  const agent = createAgent({
    model: scriptedModel([say('Hello.')]),
    generateId: () => 'u1',
    approvals: { secret: SECRET, ledger: memoryLedger() },
  })
  const { events } = await agent.generate({ threadId: 't', runId: 'r', messages: [said('u1', 'Hi')] })
  expect(events).toContainEqual(expect.objectContaining({ type: 'TEXT_MESSAGE_START', messageId: 'u1-2' }))
})

// A data part may be written again under the id that a tool chose.

const note = (callId: string, id: string, text: string) => call([callId, 'note', { id, text }])

test('a data part that is written again in another version of a reply leaves the first version as it was', async () => {
  const chat = setUp(
    [
      note('c1', 'w', 'First.'),
      say('One.'),
      note('c2', 'w', 'Second.'),
      say('Two.'),
      note('c3', 'w', 'Third.'),
    ],
    counter(),
  )
  await chat.run([said('u1', 'Hi')])
  const before = await chat.stored()
  const first = await chat.shown()
  await chat.run([], { regenerate: 'u1' })
  const second = await chat.shown()
  expect(second).toContain('w-2')
  expect((await chat.stored()).slice(0, before.length)).toEqual(before)
  await chat.show('w')
  expect(await chat.shown()).toEqual(first)
  await chat.show('w-2')
  expect(await chat.shown()).toEqual(second)
  await chat.run([said('u2', 'Again')])
  expect((await chat.stored()).filter(({ role }) => role === 'activity')).toEqual([
    expect.objectContaining({ id: 'w', content: { text: 'First.' } }),
    expect.objectContaining({ id: 'w-2', content: { text: 'Third.' } }),
  ])
})

for (const taken of ['u1', 'msg1', 'u2'])
  test(`a data part with the id of another message, ${taken}, is stored beside it`, async () => {
    const chat = setUp(
      [say('One.'), note('c1', taken, 'A.'), note('c2', taken, 'B.'), say('Two.')],
      counter(),
    )
    await chat.run([said('u1', 'Hi')])
    const before = await chat.stored()
    await chat.run([said('u2', 'Again')])
    expect((await chat.stored()).slice(0, before.length)).toEqual(before)
    expect((await chat.shown())?.slice(0, 3)).toEqual(['u1', 'msg1', 'u2'])
    expect((await chat.stored()).filter(({ role }) => role === 'activity')).toEqual([
      expect.objectContaining({ id: `${taken}-2`, content: { text: 'B.' } }),
    ])
  })

test('a message never gets the id that a tool chose for a data part', async () => {
  const chat = setUp([note('c1', 'msg3', 'A.'), say('One.')], counter())
  await chat.run([said('u1', 'Hi')])
  expect((await chat.stored()).map(({ id, role }) => [id, role])).toContainEqual(['msg3', 'activity'])
  expect(await chat.shown()).toEqual(['u1', 'msg1', 'msg3', 'msg3-2'])
})

// Of ids that no request may have: what has one could never be sent again.

const UNUSABLE = { empty: '', 'too long': 'x'.repeat(5000), 'with a control character': 'a\u0000b' }

for (const [what, id] of Object.entries(UNUSABLE)) {
  test(`a generateId that returns ids which no request may have (${what}) makes none of a message or request`, async () => {
    const agent = createAgent({
      model: scriptedModel([call(['c1', 'send', {}]), say('Done.')]),
      tools: [counted('send', { needsApproval: true }).tool],
      generateId: () => id,
      approvals: { secret: SECRET, ledger: memoryLedger(), generateId: () => id },
    })
    const start = [said('u1', 'Hi')]
    const events: AGUIEvent[] = []
    const input = { threadId: 't', runId: 'r', messages: start, protocolVersion: '1.0' }
    for await (const event of agent.run(input, { context })) events.push(event)
    const [asked] = requests(events)
    const body = {
      ...{ ...input, runId: 'r2', tools: [], context: [], messages: fold(start, events) },
      resume: [{ interruptId: asked?.approval.id, status: 'resolved', payload: { approved: true } }],
    }
    const headers = { 'content-type': 'application/json' }
    const request = new Request('http://l/', { method: 'POST', headers, body: JSON.stringify(body) })
    const response = await handleChat(agent, request, { context })
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('Done.')])
  })

  test(`a run with an id that no request may have (${what}) is refused before it starts`, async () => {
    const model = scriptedModel([say('Hello.')])
    const threads = memoryThreads()
    const agent = createAgent({ model, threads, approvals: { secret: SECRET, ledger: memoryLedger() } })
    const input = { threadId: 't', runId: 'r', messages: [said('u1', 'Hi')] }
    for (const [place, wrong] of Object.entries({
      '`threadId`': { ...input, threadId: id },
      '`runId`': { ...input, runId: id },
      'the id of a message': { ...input, messages: [said(id, 'Hi')] },
    })) {
      const refusal = { code: 'invalid-argument', message: expect.stringContaining(place) }
      expect(() => agent.run(wrong, { context }), place).toThrow(expect.objectContaining(refusal))
      await expect(agent.generate(wrong, { context }), place).rejects.toMatchObject(refusal)
      await expect(agent.openThread(wrong, context), place).rejects.toMatchObject(refusal)
    }
    expect(await threads.list('ann', { limit: 10 })).toMatchObject({ threads: [] })
    expect(model.requests).toHaveLength(0)
  })
}

test('an id that has grown too long by its number is replaced by another', async () => {
  const long = 'x'.repeat(255)
  const chat = setUp([say('One.'), say('Two.')], () => long)
  await chat.run([said('u1', 'Hi')])
  await chat.run([said('u2', 'Again')])
  expect((await chat.stored()).map(({ id }) => id)).toEqual([
    'u1',
    long,
    'u2',
    expect.stringMatching(/^msg_/),
  ])
})
