import type { AGUIEvent, Message, RunAgentInput } from '@countersign/core'
import {
  createAgent,
  loadThread,
  memoryLedger,
  memoryThreads,
  type ScriptedTurn,
  scriptedModel,
} from '@countersign/server'
import { expect, test } from 'vitest'
import { call, counted, SECRET, say, user } from '../support.js'

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
