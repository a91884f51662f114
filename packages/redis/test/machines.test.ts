import type { AGUIEvent, ResumeEntry, RunAgentInput } from '@countersign/core'
import { redisAnswerChannel, redisLedger, redisRunLog } from '@countersign/redis'
import { answerResponse, handleChat, rejoinResponse } from '@countersign/server'
import { expect } from 'vitest'
import {
  call,
  collect,
  counted,
  fold,
  input,
  refusals,
  requests,
  results,
  say,
  testAgent,
  user,
} from '../../server/test/support.js'
import { useRedis } from './server.js'

const { test, connect, newPrefix } = await useRedis('two servers on one Redis')

const context = { subject: 'alice' }

/** Two servers with the same secret, tools and Redis, each with connections of its own. `runs` is what the tool did on either. */
async function machines() {
  const prefix = newPrefix()
  const send = counted('send', { needsApproval: true, scopes: ['once', 'session'] })
  let calls = 0
  const machine = async () => {
    const client = await connect()
    const answerChannel = redisAnswerChannel(client, { prefix })
    const runLog = redisRunLog(client, { prefix })
    const { agent } = testAgent(
      ({ messages }) =>
        messages.at(-1)?.role === 'user' ? call([`c${++calls}`, 'send', { n: 1 }]) : say('done'),
      { tools: [send.tool], approvals: { ledger: redisLedger(client, { prefix }) }, runLog, answerChannel },
    )
    const close = () => {
      answerChannel.close()
      runLog.close()
    }
    return { agent, close }
  }
  const [one, other] = [await machine(), await machine()]
  const close = () => {
    one.close()
    other.close()
  }
  return { one: one.agent, other: other.agent, runs: send.runs, close }
}

const yes = (id = '', scope: 'once' | 'session' = 'once'): ResumeEntry[] => [
  { interruptId: id, status: 'resolved', payload: { approved: true, scope } },
]
const no = (id = ''): ResumeEntry[] => [{ interruptId: id, status: 'resolved', payload: { approved: false } }]

const post = (body: unknown) =>
  new Request('http://localhost/', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

/** Reads a stream; `until` ends the reading early, as a connection that breaks does. Answers the events and the last id. */
async function read(response: Response, until: (event: AGUIEvent) => boolean = () => false) {
  const events: AGUIEvent[] = []
  let lastId = ''
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true })
    const frames = text.split('\n\n')
    text = frames.pop() ?? ''
    for (const frame of frames) {
      const [, id, data] = /^id: (.+)\ndata: (.+)$/.exec(frame) ?? []
      if (id === undefined || data === undefined) continue
      lastId = id
      const event: AGUIEvent = JSON.parse(data)
      events.push(event)
      if (until(event)) return { events, lastId }
    }
  }
  return { events, lastId }
}

const isQuestion = (event: AGUIEvent) => event.type === 'CUSTOM' && event.name === 'approval-requested'

test('asked on one server and answered on another, 50 times at once on both: the call runs once', async () => {
  const { one, other, runs, close } = await machines()
  const start = [user('go')]
  const asking = await collect(one, input(start), { context })
  const [asked] = requests(asking)
  const history = fold(start, asking)
  const answers = Array.from({ length: 50 }, (_, index) =>
    collect(index % 2 === 0 ? other : one, input(history, { resume: yes(asked?.approval.id) }), { context }),
  )
  const outcomes = (await Promise.all(answers)).map((events) => results(events)[0]?.content)
  expect([runs.length, new Set(outcomes.map((outcome) => JSON.stringify(outcome))).size]).toEqual([1, 1])
  const late = await collect(one, input(history, { resume: no(asked?.approval.id) }), { context })
  expect(refusals(late)).toMatchObject([{ code: 'approval-conflict' }])
  close()
})

test('a session approval of one server is honoured by another, and ended there for both', async () => {
  const { one, other, runs, close } = await machines()
  const start = [user('go')]
  const asking = await collect(one, input(start), { context })
  const history = fold(start, asking)
  const answering = input(history, { resume: yes(requests(asking)[0]?.approval.id, 'session') })
  const answered = await collect(one, answering, { context })
  const next = [...fold(history, answered), user('again')]
  expect(requests(await collect(other, input(next), { context }))).toEqual([])
  expect(runs.length).toBe(2)
  expect(await other.grants.revoke('alice')).toBe(1)
  expect(requests(await collect(one, input(next), { context })).length).toBe(1)
  expect(requests(await collect(one, input(next), { context: { subject: 'bob' } })).length).toBe(1)
  close()
})

test('an answer that comes to one server reaches the run that stays open on the other', async () => {
  const { one, other, runs, close } = await machines()
  const given: RunAgentInput = input([user('go')])
  const { threadId, runId } = given
  const response = await handleChat(one, post(given), { context, live: true })
  let delivered: Promise<Response> | undefined
  const { events } = await read(response, (event) => {
    if (isQuestion(event)) {
      const resume = yes(requests([event])[0]?.approval.id)
      delivered = answerResponse(other, post({ threadId, runId, resume }), { context })
    }
    return event.type === 'RUN_FINISHED'
  })
  expect([(await delivered)?.status, runs.length, results(events).length]).toEqual([200, 1, 1])
  const stranger = await answerResponse(other, post({ threadId, runId, resume: yes('x') }), {
    context: { subject: 'bob' },
  })
  expect(stranger.status).toBe(409)
  close()
})

test('a run that one server streams is taken up on the other, while it goes on, and by its own person only', async () => {
  const { one, other, runs, close } = await machines()
  const given: RunAgentInput = input([user('go')])
  const { threadId, runId } = given
  const streamed = await handleChat(one, post(given), { context, live: true, goOnFor: 30_000 })
  const first = await read(streamed, isQuestion)
  const url = `http://localhost/?threadId=${threadId}&runId=${runId}`
  const request = () => new Request(url, { headers: { 'last-event-id': first.lastId } })
  expect((await rejoinResponse(other, request(), { context: { subject: 'bob' } })).status).toBe(204)
  const rest = read(await rejoinResponse(other, request(), { context }))
  const resume = yes(requests(first.events)[0]?.approval.id)
  const delivered = await answerResponse(other, post({ threadId, runId, resume }), { context })
  const { events } = await rest
  expect([delivered.status, runs.length, events.at(-1)?.type]).toEqual([200, 1, 'RUN_FINISHED'])
  const all = [...first.events, ...events]
  expect(all.filter(({ type }) => type === 'RUN_STARTED').length).toBe(1)
  expect(results(all).length).toBe(1)
  close()
})
