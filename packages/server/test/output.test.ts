import {
  type AGUIEvent,
  isCountersignError,
  type Message,
  StreamProcessor,
  type TextPart,
} from '@countersign/core'
import { fullSteps } from '@countersign/core/ag-ui'
import { type AgentOptions, loadThread, type ModelEvent, memoryThreads } from '@countersign/server'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { z } from 'zod'
import {
  answer,
  ask,
  call,
  collect,
  counted,
  input,
  last,
  results,
  say,
  testAgent,
  types,
  user,
} from './support.js'

const trip = z.object({ city: z.string(), days: z.number(), stops: z.array(z.string()) })
const value = { city: 'Oslo', days: 2, stops: ['Fjord', 'Opera'] }
const json = JSON.stringify(value)

/** The model says a text in pieces of this many characters. */
const inPieces = (text: string, size: number): ModelEvent[] => [
  ...(text.match(new RegExp(`.{1,${size}}`, 'gs')) ?? []).map(
    (delta): ModelEvent => ({ type: 'text-delta', delta }),
  ),
  { type: 'finish', reason: 'stop' },
]

/** The text parts that a page shows after each event, and at the end. */
function page(events: readonly AGUIEvent[], before: readonly Message[] = []) {
  const processor = new StreamProcessor({ moreSteps: fullSteps })
  processor.dispatch({ type: 'MESSAGES_SNAPSHOT', messages: [...before] })
  const seen: TextPart[] = []
  const part = () =>
    processor
      .getSnapshot()
      .messages.flatMap(({ role, parts }) => (role === 'assistant' ? parts : []))
      .findLast((one): one is TextPart => one.type === 'text')
  for (const event of events) {
    processor.dispatch(event)
    const now = part()
    if (now !== undefined && now !== seen.at(-1)) seen.push(now)
  }
  return { seen, part: part(), messages: processor.getSnapshot().messages }
}

test('T31 a structured reply streams as text and as partial values, and ends as the validated value', async () => {
  const { agent, model } = testAgent([inPieces(json, 3)], { output: trip })
  const events = await collect(agent, input([user('go')]))
  expect(model.requests[0]?.output).toEqual({
    type: 'object',
    properties: {
      city: { type: 'string' },
      days: { type: 'number' },
      stops: { type: 'array', items: { type: 'string' } },
    },
    required: ['city', 'days', 'stops'],
  })
  expect(last(events)).toMatchObject({ type: 'RUN_FINISHED', result: value })
  const { seen, part } = page(events)
  const partial = seen.filter(({ outputState }) => outputState === 'partial').map(({ output }) => output)
  expect(partial).toContainEqual({ city: 'Osl' })
  expect(partial).toContainEqual({ city: 'Oslo', days: 2, stops: [] })
  expect(seen.every(({ text }) => json.startsWith(text))).toBe(true)
  expect(part).toEqual({ type: 'text', text: json, output: value, outputState: 'final' })
})

test('T31 generate returns the value, typed; a schema of one run replaces that of the agent', async () => {
  const { agent } = testAgent([say(json), say('"yes"')], { output: trip })
  const { output, text } = await agent.generate(input([user('go')]))
  expect(output).toEqual(value)
  expect(text).toBe(json)
  const { output: word } = await agent.generate(input([user('go')]), { output: z.enum(['yes', 'no']) })
  const typed: 'yes' | 'no' | undefined = word
  expect(typed).toBe('yes')
})

test('T31 what the schema returns counts: for generate as it is, for the page as JSON', async () => {
  const output = z.object({
    day: z.string().transform((text) => new Date(text)),
    note: z.string().default('none'),
  })
  const { agent } = testAgent(() => say('{"day":"2026-11-25T00:00:00.000Z"}'), {})
  const outputSchema = { type: 'object' }
  const made = await agent.generate(input([user('go')]), { output, outputSchema })
  expect(made.output).toEqual({ day: new Date('2026-11-25'), note: 'none' })
  const { part } = page(await collect(agent, input([user('go')]), { output, outputSchema }))
  expect(part).toMatchObject({
    outputState: 'final',
    output: { day: '2026-11-25T00:00:00.000Z', note: 'none' },
  })
})

test('T31 tools and approvals come first: their steps have texts, and the reply is read at the end, in a later run', async () => {
  const threads = memoryThreads()
  const remove = counted('remove', { needsApproval: true })
  const look = counted('look')
  const { agent } = testAgent(
    [
      [{ type: 'text-delta', delta: 'I look first.' }, ...call(['c1', 'look', {}])],
      call(['c2', 'remove', {}]),
      say(json),
    ],
    { output: trip, tools: [remove.tool, look.tool], threads },
  )
  const { events, first, history } = await ask(agent)
  expect(last(events)).toMatchObject({ outcome: { type: 'interrupt' } })
  expect(last(events)).not.toHaveProperty('result')
  expect(page(events).part).toEqual({ type: 'text', text: 'I look first.' })
  expect(JSON.stringify(page(events).messages)).not.toContain('partial')
  const resumed = await collect(agent, input(history, { resume: [answer(first, { approved: true })] }))
  expect(results(resumed)).toMatchObject([{ content: { done: 'remove' } }])
  expect(last(resumed)).toMatchObject({ result: value })
  const loaded = await loadThread(agent, { threadId: 'thread' })
  const texts = loaded?.messages.flatMap(({ role, parts }) => (role === 'assistant' ? parts : []))
  expect(texts?.filter(({ type }) => type === 'text')).toEqual([
    { type: 'text', text: 'I look first.' },
    { type: 'text', text: json, output: value, outputState: 'final' },
  ])
})

test.each([
  ['does not fit', '{"city":1}', 'stop', 'city'],
  ['is no JSON', 'Oslo, two days.', 'stop', 'not JSON'],
  ['was cut off', json.slice(0, -3), 'length', 'stopped with length'],
  ['is empty', '', 'stop', 'empty'],
])(
  'T31 a reply that %s ends the run with invalid-output, and its text is kept',
  async (_, text, reason, why) => {
    const threads = memoryThreads()
    const usage = { inputTokens: 7, outputTokens: 3 }
    const turn: ModelEvent[] = [
      { type: 'text-delta', delta: text },
      { type: 'usage', usage },
      { type: 'finish', reason },
    ]
    const { agent } = testAgent(() => turn, { output: trip, threads })
    const events = await collect(agent, input([user('go')]))
    expect(last(events)).toMatchObject({
      type: 'RUN_ERROR',
      code: 'invalid-output',
      message: expect.stringContaining(why),
      usage: [usage],
    })
    const parts = text === '' ? undefined : { type: 'text', text }
    expect(page(events).part).toEqual(parts)
    const loaded = await loadThread(agent, { threadId: 'thread' })
    expect(loaded?.messages[1]?.parts[0]).toEqual(parts)
    const error: unknown = await agent.generate(input([user('again')])).catch((thrown: unknown) => thrown)
    expect(isCountersignError(error) && error.data).toMatchObject({ code: 'invalid-output', usage: [usage] })
    expect(isCountersignError(error) && error.cause).toMatchObject({ data: { text, finishReason: reason } })
  },
)

test('T31 sources that a model names within a structured reply follow it', async () => {
  const source: ModelEvent = { type: 'source', source: { id: 's1', url: 'https://example.org' } }
  const [first, ...rest] = inPieces(json, 20)
  const { agent } = testAgent([[...(first ? [first] : []), source, ...rest]], { output: trip })
  const events = await collect(agent, input([user('go')]))
  expect(types(events).slice(-3)).toEqual(['TEXT_MESSAGE_END', 'CUSTOM source', 'RUN_FINISHED'])
  expect(page(events).messages.at(-1)?.parts).toMatchObject([{ output: value }, { type: 'source' }])
})

test('T31 thinking between pieces of the reply does not disturb it', async () => {
  const { agent } = testAgent(
    [
      [
        { type: 'text-delta', delta: json.slice(0, 10) },
        { type: 'reasoning-delta', delta: 'Hm.' },
        { type: 'text-delta', delta: json.slice(10) },
        { type: 'reasoning-delta', delta: 'Done.' },
        { type: 'finish', reason: 'stop' },
      ],
    ],
    { output: trip },
  )
  const events = await collect(agent, input([user('go')]))
  expect(last(events)).toMatchObject({ result: value })
  const parts = page(events).messages.at(-1)?.parts
  expect(parts).toMatchObject([{ text: json.slice(0, 10) }, {}, { output: value, outputState: 'final' }, {}])
  expect(parts?.[0]).not.toHaveProperty('output')
})

test('T31 a run that is stopped, or may not call the model again, has no value', async () => {
  const stop = new AbortController()
  const { agent } = testAgent(
    [
      async function* () {
        yield { type: 'text-delta', delta: json.slice(0, 9) }
        stop.abort()
      },
      call(['c1', 'look', {}]),
    ],
    { output: trip, tools: [counted('look').tool], maxSteps: 1 },
  )
  expect(last(await collect(agent, input([user('go')]), { signal: stop.signal }))).not.toHaveProperty(
    'result',
  )
  expect(await agent.generate(input([user('go')]))).not.toHaveProperty('output')
})

test.each<[string, Pick<AgentOptions, 'output' | 'outputSchema'>]>([
  ['no schema', { output: {} as never }],
  ['a schema without JSON Schema', { output: v.object({ city: v.string() }) }],
])('T31 %s as output is an invalid option', (_, options) => {
  expect(() => testAgent([], options)).toThrow(expect.objectContaining({ code: 'invalid-option' }))
  const { agent } = testAgent([])
  expect(() => agent.run(input([user('go')]), options)).toThrow(/output/)
})

test('T31 with outputSchema, a schema library that makes no JSON Schema works too', async () => {
  const outputSchema = { type: 'object', properties: { city: { type: 'string' } } }
  const { agent, model } = testAgent([say('{"city":"Oslo"}')], {
    output: v.object({ city: v.string() }),
    outputSchema,
  })
  expect((await agent.generate(input([user('go')]))).output).toEqual({ city: 'Oslo' })
  expect(model.requests[0]?.output).toBe(outputSchema)
})
