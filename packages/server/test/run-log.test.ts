import {
  handleChat,
  type Model,
  memoryAnswerChannel,
  memoryRunLog,
  type RunLog,
  rejoinResponse,
} from '@countersign/server'
import { expect, test } from 'vitest'
import { describeAnswerChannel } from '../../testing/src/suites/answer-channel.js'
import { describeRunLog } from '../../testing/src/suites/run-log.js'
import { input, say, testAgent, user } from './support.js'

describeRunLog('memoryRunLog', () => ({ log: memoryRunLog() }), { test, expect })
describeAnswerChannel('memoryAnswerChannel', () => ({ channel: memoryAnswerChannel() }), { test, expect })

const never = new AbortController().signal

async function keep(log: RunLog, key: string, events: readonly string[], end = true): Promise<void> {
  const writer = await log.begin(key)
  await writer.append(events)
  if (end) await writer.end()
}

const isKept = async (log: RunLog, key: string) => (await log.read(key, 0, never)) !== undefined

test('a run in memory is forgotten some time after its end, and not before', async () => {
  let now = 0
  const log = memoryRunLog({ keepFor: 1000, now: () => now })
  await keep(log, 'open', ['a'], false)
  await keep(log, 'ended', ['a'])
  now = 999
  expect(await isKept(log, 'ended')).toBe(true)
  now = 1000
  expect(await isKept(log, 'ended')).toBe(false)
  expect(await isKept(log, 'open')).toBe(true)
})

test('beyond maxRuns the oldest run that has ended goes, and an open one only where none has ended', async () => {
  const log = memoryRunLog({ maxRuns: 2 })
  await keep(log, 'open', ['a'], false)
  await keep(log, 'ended', ['a'])
  await keep(log, 'new', ['a'], false)
  expect([await isKept(log, 'open'), await isKept(log, 'ended'), await isKept(log, 'new')]).toEqual([
    true,
    false,
    true,
  ])
  await keep(log, 'newer', ['a'], false)
  expect([await isKept(log, 'open'), await isKept(log, 'new'), await isKept(log, 'newer')]).toEqual([
    false,
    true,
    true,
  ])
})

test('a run that says more than maxRunSize is dropped whole, and its readers end', async () => {
  const log = memoryRunLog({ maxRunSize: 10 })
  const writer = await log.begin('run')
  await writer.append(['12345'])
  const reading = (async () => {
    const read: string[] = []
    for await (const batch of (await log.read('run', 0, never)) ?? [])
      read.push(...batch.map(({ data }) => data))
    return read
  })()
  await new Promise((resolve) => setImmediate(resolve))
  await writer.append(['123456'])
  expect(await reading).toEqual(['12345'])
  expect(await isKept(log, 'run')).toBe(false)
})

test('beyond maxSize the oldest runs go', async () => {
  const log = memoryRunLog({ maxSize: 10 })
  for (const key of ['one', 'two', 'three']) await keep(log, key, ['12345'])
  expect([await isKept(log, 'one'), await isKept(log, 'two'), await isKept(log, 'three')]).toEqual([
    false,
    true,
    true,
  ])
})

test.each([{ maxRuns: 4 }, { maxSize: 20 }])(
  'one user, or sockets without one, drop no open run of another user, however much they have (%o)',
  async (limits) => {
    const log = memoryRunLog(limits)
    const keyOf = (kind: string, id: string, run: number) =>
      `${kind.length}:${kind}${id.length}:${id}1:t${String(run).length}:${run}`
    await keep(log, keyOf('subject', 'ann', 1), ['12345'], false)
    for (let run = 1; run <= 9; run++) await keep(log, keyOf('subject', 'eve', run), ['12345'], run % 2 > 0)
    for (let run = 1; run <= 9; run++) await keep(log, keyOf('socket', `s${run}`, run), ['12345'], false)
    expect(await isKept(log, keyOf('subject', 'ann', 1))).toBe(true)
    expect(await isKept(log, keyOf('socket', 's9', 9))).toBe(true)
  },
)

test.each(['keepFor', 'maxRuns', 'maxRunSize', 'maxSize'] as const)(
  'memoryRunLog refuses a %s that bounds nothing',
  (option) => {
    expect(() => memoryRunLog({ [option]: 0 })).toThrow(new RegExp(option))
    expect(() => memoryRunLog({ [option]: Number.NaN })).toThrow(new RegExp(option))
  },
)

test('a log that fails stops no run: there is a warning, and nothing to take up', async () => {
  const warnings: string[] = []
  const broken: RunLog = {
    begin: async () => ({
      append: () => Promise.reject(new Error('no space')),
      end: async () => {},
    }),
    read: () => Promise.reject(new Error('no network')),
  }
  const { agent } = testAgent([say('hi')], { runLog: broken, warn: (message) => void warnings.push(message) })
  const context = { subject: 'ann' }
  const given = input([user('go')])
  const request = new Request('http://localhost/', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(given),
  })
  const response = await handleChat(agent, request, { context })
  expect(await response.text()).toContain('RUN_FINISHED')
  const url = `http://localhost/?threadId=${given.threadId}&runId=${given.runId}`
  expect((await rejoinResponse(agent, new Request(url), { context })).status).toBe(204)
  expect(warnings.filter((text) => text.includes('run log'))).toHaveLength(2)
})

test('where the application names no person, runs are not kept', async () => {
  let begun = 0
  const log = memoryRunLog()
  const counting: RunLog = {
    begin: (key) => {
      begun++
      return log.begin(key)
    },
    read: log.read,
  }
  const { agent } = testAgent([say('hi')], { runLog: counting })
  const request = new Request('http://localhost/', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(input([user('go')])),
  })
  expect(await (await handleChat(agent, request)).text()).toContain('RUN_FINISHED')
  expect(begun).toBe(0)
})

test.each([
  ['no run', '', undefined, 400],
  ['an empty id', '?threadId=&runId=r', undefined, 400],
  ['an event id of another run', '?threadId=t&runId=r', 'other:1', 400],
  ['an event id that is no number', '?threadId=t&runId=r', 'r:x', 400],
  ['a run that nobody knows', '?threadId=t&runId=r', 'r:1', 204],
])('a rejoin with %s is answered %s', async (_, query, lastEventId, status) => {
  const { agent } = testAgent([say('hi')])
  const request = new Request(`http://localhost/${query}`, {
    headers: lastEventId === undefined ? {} : { 'last-event-id': lastEventId },
  })
  const response = await rejoinResponse(agent, request, { context: { subject: 'ann' } })
  expect(response.status).toBe(status)
})

test('a rejoin is a GET, and a stop a DELETE', async () => {
  const { agent } = testAgent([say('hi')])
  const response = await rejoinResponse(
    agent,
    new Request('http://localhost/?threadId=t&runId=r', { method: 'POST' }),
  )
  expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, DELETE'])
})

/** A model that reads its deltas in pieces of 50, as one read of its connection gives them. */
function inPieces(deltas: number): Model {
  return {
    id: 'in-pieces',
    async *stream() {
      for (let n = 0; n < deltas; n++) {
        if (n % 50 === 0) await new Promise((resolve) => setTimeout(resolve))
        yield { type: 'text-delta', delta: `${n} ` }
      }
      yield { type: 'finish', reason: 'stop' }
    },
  }
}

test('T25 a log elsewhere is written at most once for each read of the model, and before anything is sent', async () => {
  const inner = memoryRunLog()
  let writes = 0
  const written: string[] = []
  const log: RunLog = {
    read: inner.read,
    begin: async (key) => {
      const writer = await inner.begin(key)
      return {
        append: async (events) => {
          writes++
          await new Promise((resolve) => setTimeout(resolve, writes % 3))
          await writer.append(events)
          written.push(...events)
        },
        end: writer.end,
      }
    },
  }
  const { agent } = testAgent([], { model: inPieces(2000), runLog: log })
  const request = new Request('http://localhost/chat', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(input([user('go')])),
  })
  const response = await handleChat(agent, request, { context: { subject: 'ann' } })
  const sent: string[] = []
  const decoder = new TextDecoder()
  let rest = ''
  for await (const bytes of response.body ?? []) {
    rest += decoder.decode(bytes, { stream: true })
    const frames = rest.split('\n\n')
    rest = frames.pop() ?? ''
    sent.push(...frames.flatMap((frame) => frame.match(/^data: (.*)$/m)?.slice(1) ?? []))
    expect(written.length >= sent.length).toBe(true)
  }
  expect(sent).toEqual(written)
  expect(sent.filter((text) => text.includes('TEXT_MESSAGE_CONTENT')).length).toBe(2000)
  // and a few for what the run says of itself before and after
  expect(writes).toBeLessThanOrEqual(40 + 5)
})

test.each([
  ['with its run log', { subject: 'ann' }],
  ['without a run log', {}],
])('what comes with one read of the model is sent as one chunk %s', async (_, context) => {
  const { agent } = testAgent([], { model: inPieces(2000), runLog: memoryRunLog() })
  const request = new Request('http://localhost/chat', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(input([user('go')])),
  })
  const { body } = await handleChat(agent, request, { context })
  let chunks = 0
  let text = ''
  for await (const bytes of body ?? []) {
    chunks++
    text += new TextDecoder().decode(bytes)
  }
  expect([...text.matchAll(/"delta":"(\d+) "/g)].map(([, n]) => Number(n))).toEqual([...Array(2000).keys()])
  // 40 reads of 50 deltas, and a few for the run's start and end
  expect(chunks).toBeLessThanOrEqual(40 + 5)
})
