import type { AGUIEvent } from '@countersign/core'
import {
  type AnswerChannel,
  answerResponse,
  grantsResponse,
  handleChat,
  memoryAnswerChannel,
  memoryLedger,
  serveSocket,
} from '@countersign/server'
import { expect, test } from 'vitest'
import {
  call,
  collect,
  counted,
  fold,
  input,
  requests,
  results,
  say,
  testAgent,
  types,
  user,
} from './support.js'

const context = { subject: 'ann' }

async function serveLive(answerChannel: AnswerChannel) {
  const { tool, runs } = counted('send', { needsApproval: true })
  const warnings: string[] = []
  const { agent } = testAgent([call(['c1', 'send', { n: 1 }]), say('done')], {
    tools: [tool],
    answerChannel,
    warn: (message) => warnings.push(message),
  })
  const start = [user('go')]
  const request = new Request('http://localhost/', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(input(start)),
  })
  const response = await handleChat(agent, request, { context, live: true })
  const frames = (await response.text()).split('\n').filter((line) => line.startsWith('data: '))
  const events = frames.map((line): AGUIEvent => JSON.parse(line.slice(6)))
  return { agent, events, runs, start, warnings }
}

const down = async () => {
  throw new Error('nobody answers')
}

test('a live run whose channel cannot be opened ends with its question, which a later request answers', async () => {
  const { agent, events, runs, start, warnings } = await serveLive({ open: down, deliver: down })
  expect([events.at(-1)?.type, requests(events).length]).toEqual(['RUN_FINISHED', 1])
  expect(types(events).filter((type) => type === 'RUN_STARTED').length).toBe(1)
  expect(warnings).toContain('The answer channel could not be opened; the run takes no live answers.')
  const resume = [
    {
      interruptId: requests(events)[0]?.approval.id ?? '',
      status: 'resolved' as const,
      payload: { approved: true },
    },
  ]
  const answered = await collect(agent, input(fold(start, events), { resume }), { context })
  expect([results(answered).length, runs.length]).toEqual([1, 1])
})

test('a channel that cannot be closed takes nothing from a run that has ended', async () => {
  const memory = memoryAnswerChannel()
  const { tool } = counted('free')
  const warnings: string[] = []
  const { agent } = testAgent([call(['c1', 'free', {}]), say('done')], {
    tools: [tool],
    answerChannel: { ...memory, open: async () => down },
    warn: (message) => warnings.push(message),
  })
  const request = new Request('http://localhost/', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(input([user('go')])),
  })
  const text = await (await handleChat(agent, request, { context, live: true })).text()
  expect(text).toContain('"type":"RUN_FINISHED"')
  expect(warnings).toContain('The answer channel of a run could not be closed.')
})

const live = {
  threadId: 'thread',
  runId: 'run',
  resume: [{ interruptId: 'a1', status: 'resolved', payload: { approved: true } }],
}

test('an answer to a channel that is down is a 503 that says so, without internals', async () => {
  const warnings: string[] = []
  const memory = memoryAnswerChannel()
  const { agent } = testAgent([], {
    answerChannel: { ...memory, deliver: down },
    warn: (message) => warnings.push(message),
  })
  const request = new Request('http://localhost/', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(live),
  })
  const response = await answerResponse(agent, request, { context })
  expect(response.status).toBe(503)
  expect(await response.json()).toMatchObject({
    error: { code: 'ledger-unavailable', message: expect.not.stringContaining('nobody answers') },
  })
  expect(warnings).toContain('The answer channel could not be reached; an answer was not delivered.')
})

test('over a socket an answer to a channel that is down is refused as ledger-unavailable', async () => {
  const { agent } = testAgent([], { answerChannel: { ...memoryAnswerChannel(), deliver: down } })
  const sent: unknown[] = []
  let receive: (event: { data: unknown }) => void = () => {}
  const socket = {
    readyState: 1,
    send: (data: string) => sent.push(JSON.parse(data)),
    close: () => {},
    addEventListener(type: string, listener: (event: { data: unknown }) => void) {
      if (type === 'message') receive = listener
    },
  }
  serveSocket(agent, socket, new Request('http://localhost/'), { context: () => context })
  receive({ data: JSON.stringify({ type: 'answer', id: '1', ...live }) })
  await expect.poll(() => sent).toMatchObject([{ type: 'refused', id: '1', code: 'ledger-unavailable' }])
})

test('grants of a ledger that is down are a 503 that says so', async () => {
  const { agent } = testAgent([], {
    approvals: { ledger: { ...memoryLedger(), list: down, revoke: down } },
  })
  for (const method of ['GET', 'DELETE']) {
    const request = new Request('http://localhost/?threadId=thread', { method })
    const response = await grantsResponse(agent, request, { context })
    expect(response.status).toBe(503)
    expect(await response.json()).toMatchObject({ error: { code: 'ledger-unavailable' } })
  }
  await expect(agent.grants.list('ann')).rejects.toMatchObject({ code: 'ledger-unavailable' })
})
