import {
  type AGUIEvent,
  type Message,
  StreamProcessor,
  type UIMessage,
  type WritablePart,
} from '@countersign/core'
import { fullSteps } from '@countersign/core/ag-ui'
import { answerQueue, loadThread, memoryThreads, type StepOverrides, tool } from '@countersign/server'
import { expect, test } from 'vitest'
import { z } from 'zod'
import {
  answer,
  ask,
  call,
  collect,
  input,
  last,
  requests,
  results,
  say,
  testAgent,
  types,
  user,
} from './support.js'

/** A tool that writes these parts. */
const writing = (parts: readonly WritablePart[], needsApproval = false) =>
  tool({
    name: 'write',
    description: 'Writes.',
    input: z.object({}),
    needsApproval,
    async execute(_, { write }) {
      for (const part of parts) await write(part)
      return 'ok'
    },
  })

/** What a page shows after these events. */
function shown(events: readonly AGUIEvent[], before: readonly Message[] = []): readonly UIMessage[] {
  const page = new StreamProcessor({ moreSteps: fullSteps })
  page.dispatch({ type: 'MESSAGES_SNAPSHOT', messages: [...before] })
  for (const event of events) page.dispatch(event)
  return page.getSnapshot().messages
}

const dataOf = (messages: readonly UIMessage[]) =>
  messages.flatMap(({ id, parts }) =>
    parts.flatMap((part) => (part.type === 'data' ? [{ id, name: part.name, data: part.data }] : [])),
  )

const chart: WritablePart = { type: 'data', id: 'chart', name: 'chart', data: { points: [1] } }
const all: readonly WritablePart[] = [
  chart,
  { type: 'data', name: 'note', data: 'read' },
  { type: 'source', id: 's1', url: 'https://example.org/a', title: 'A' },
  { type: 'metadata', metadata: { cost: 3 } },
  { type: 'metadata', metadata: { region: 'eu' } },
  { ...chart, data: { points: [1, 2] } },
]

test('T32 a tool writes data, sources and metadata; data with a known id is replaced in its place; no model gets any of it', async () => {
  const { agent, model } = testAgent([call(['c1', 'write', {}]), say('Done.')], { tools: [writing(all)] })
  const events = await collect(agent, input([user('go')]))
  const messages = shown(events)
  expect(messages.map(({ parts }) => parts.map(({ type }) => type))).toEqual([
    ['tool-call', 'source', 'tool-result'],
    ['data'],
    ['data'],
    ['text'],
  ])
  expect(dataOf(messages)).toMatchObject([
    { id: 'chart', name: 'chart', data: { points: [1, 2] } },
    { name: 'note', data: 'read' },
  ])
  expect(messages[0]).toMatchObject({
    metadata: { cost: 3, region: 'eu' },
    parts: [{}, { type: 'source', id: 's1', url: 'https://example.org/a', title: 'A' }, {}],
  })
  expect(JSON.stringify(model.requests[1])).not.toMatch(/points|example\.org|region/)
})

test('T32 an approved tool writes too, live and from a later request, into the message of its call', async () => {
  const parts: readonly WritablePart[] = [chart, { type: 'metadata', metadata: { cost: 3 } }]
  const later = testAgent([call(['c1', 'write', {}]), say('Done.')], { tools: [writing(parts, true)] })
  const { history, first } = await ask(later.agent)
  const resume = [answer(first, { approved: true })]
  const resumed = shown(await collect(later.agent, input(history, { resume })), history)
  expect(dataOf(resumed)).toEqual([{ id: 'chart', name: 'chart', data: { points: [1] } }])
  expect(resumed.find(({ parts }) => parts[0]?.type === 'tool-call')?.metadata).toMatchObject({ cost: 3 })

  const live = testAgent([call(['c1', 'write', {}]), say('Done.')], { tools: [writing(parts, true)] })
  const answers = answerQueue()
  const events: AGUIEvent[] = []
  for await (const event of live.agent.run(input([user('go')]), { answers })) {
    events.push(event)
    const [asked] = requests([event])
    if (asked) void answers.put(answer(asked, { approved: true }))
  }
  expect(dataOf(shown(events))).toEqual([{ id: 'chart', name: 'chart', data: { points: [1] } }])
})

test('T32 a step writes into its own message; prepareStep sees the data parts and may give them to the model', async () => {
  const seen: (readonly Message[])[] = []
  const { agent, model } = testAgent([call(['c1', 'write', {}]), say('Done.')], {
    tools: [writing([chart])],
    async prepareStep({ messages, step, write }): Promise<StepOverrides> {
      await write({ type: 'data', id: `step-${step}`, name: 'step', data: step })
      await write({ type: 'metadata', metadata: { step } })
      seen.push(messages)
      const told = messages.map(
        (message): Message =>
          message.role === 'activity' && message.activityType === 'chart'
            ? { id: message.id, role: 'user', content: JSON.stringify(message.content) }
            : message,
      )
      return { messages: told }
    },
  })
  const events = await collect(agent, input([user('go')]))
  const messages = shown(events)
  expect(dataOf(messages).map(({ id, data }) => [id, data])).toEqual([
    ['step-1', 1],
    ['chart', { points: [1] }],
    ['step-2', 2],
  ])
  expect(messages.at(-1)).toMatchObject({ metadata: { step: 2 }, parts: [{ type: 'text', text: 'Done.' }] })
  expect(seen[1]?.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'activity', 'activity'])
  expect(model.requests[1]?.messages.at(-1)).toEqual({
    role: 'user',
    content: [{ type: 'text', text: '{"points":[1]}' }],
  })
})

test('T32 the thread keeps what was written, a page that loads it shows the same, and a later run replaces it in its place', async () => {
  const threads = memoryThreads()
  const written = [...all]
  const { agent, model } = testAgent(
    [call(['c1', 'write', {}]), say('Done.'), call(['c2', 'write', {}]), say('Done again.')],
    { tools: [writing(written)], threads },
  )
  const first = shown(await collect(agent, input([user('go')])))
  const load = async () => (await loadThread(agent, { threadId: 'thread' }))?.messages ?? []
  expect((await load()).slice(1)).toEqual(first)
  written.splice(0, written.length, { ...chart, data: { points: [1, 2, 3] } })
  await collect(agent, input([user('more')]))
  const loaded = await load()
  expect(dataOf(loaded)).toMatchObject([{ id: 'chart', data: { points: [1, 2, 3] } }, { data: 'read' }])
  expect(loaded.findIndex(({ id }) => id === 'chart')).toBe(2)
  expect(JSON.stringify(model.requests.at(-1))).not.toMatch(/points|example\.org|region/)
})

test.each([
  ['no JSON', { type: 'data', name: 'n', data: 1n }, 'no JSON'],
  ['no name', { type: 'data', name: '', data: 1 }, 'needs a name'],
  ['an unusable id', { type: 'data', name: 'n', id: '', data: 1 }, '256 characters'],
  ['a source without an id', { type: 'source' }, 'needs an id'],
  ['another type', { type: 'text', text: 'hi' }, 'no data part'],
  ['a reserved key', { type: 'metadata', metadata: { countersign: { token: 'x' } } }, 'reserved'],
  ['too many bytes', { type: 'data', name: 'n', data: 'x'.repeat(2048) }, 'limits.resultSize'],
])('T32 a part with %s is an error of the tool that wrote it, and nothing is sent', async (_, part, why) => {
  // What JavaScript could write.
  const { agent } = testAgent([call(['c1', 'write', {}]), say('Done.')], {
    tools: [writing([part as WritablePart])],
    limits: { resultSize: 1024 },
  })
  const events = await collect(agent, input([user('go')]))
  expect(results(events)).toMatchObject([{ content: { reason: expect.stringContaining(why) } }])
  expect(types(events)).not.toContain('ACTIVITY_SNAPSHOT')
})

test('T32 a run writes at most 1,024 data parts, and refuses more while megabytes are unread', async () => {
  const many = Array.from(
    { length: 1025 },
    (_, n): WritablePart => ({ type: 'data', name: 'n', id: `n${n}`, data: n }),
  )
  const { agent } = testAgent([call(['c1', 'write', {}]), say('Done.')], { tools: [writing(many)] })
  const events = await collect(agent, input([user('go')]))
  expect(events.filter(({ type }) => type === 'ACTIVITY_SNAPSHOT').length).toBe(1024)
  expect(results(events)).toMatchObject([{ content: { reason: expect.stringContaining('1024') } }])

  let written = 0
  const flood = tool({
    name: 'flood',
    description: 'Writes without waiting.',
    input: z.object({}),
    execute(_, { write }) {
      for (;;) {
        void write({ type: 'data', id: 'a', name: 'big', data: 'x'.repeat(100_000) })
        written++
      }
    },
  })
  const slow = testAgent([call(['c1', 'flood', {}]), say('Done.')], { tools: [flood] })
  expect(results(await collect(slow.agent, input([user('go')])))).toMatchObject([
    { content: { reason: expect.stringContaining('await write()') } },
  ])
  expect(written).toBeLessThan(20)
})

test('T32 a tool that has ended writes nothing more', async () => {
  let late: (() => Promise<void>) | undefined
  const leaving = tool({
    name: 'leave',
    description: 'Leaves.',
    input: z.object({}),
    execute(_, { write }) {
      late = () => write(chart)
      return 'ok'
    },
  })
  const { agent } = testAgent(
    [
      call(['c1', 'leave', {}]),
      async function* () {
        await late?.()
        yield* say('Done.')
      },
    ],
    { tools: [leaving] },
  )
  const events = await collect(agent, input([user('go')]))
  expect(late).toBeDefined()
  expect(types(events)).not.toContain('ACTIVITY_SNAPSHOT')
  expect(last(events)).toMatchObject({ type: 'RUN_FINISHED' })
})
