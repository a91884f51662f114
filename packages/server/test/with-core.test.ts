import {
  type AGUIEvent,
  clientTool,
  createChatState,
  type LocalEvent,
  type RunAgentInput,
  readMessages,
  resumeEntries,
  step,
  toAGUIMessages,
  type UIMessage,
} from '@countersign/core'
import { fullSteps } from '@countersign/core/ag-ui'
import { type Agent, type AgentOptions, readRunInput, type ScriptedTurn } from '@countersign/server'
import { expect, test } from 'vitest'
import * as z from 'zod'
import { call, collect, counted, input, say, testAgent } from './support.js'

const pendingIn = (messages: readonly UIMessage[]) =>
  messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'tool-call' && part.state === 'approval-requested' ? [part] : [])),
  )

/** A client made of nothing but core's machine: what it warns about, the server did wrong. */
function chat(agent: Agent, given: { readonly context?: Record<string, unknown> } = {}) {
  const state = createChatState({ moreSteps: fullSteps })
  const warnings: string[] = []
  let count = 0
  const act = (event: AGUIEvent | LocalEvent) => {
    for (const effect of step(state, event)) if (effect.type === 'warning') warnings.push(effect.message)
  }
  const run = async () => {
    const request = input(toAGUIMessages(readMessages(state)), { resume: resumeEntries(state, true) })
    act({ type: 'run-opened', runId: request.runId })
    const events = await collect(agent, await overHttp(request), given)
    for (const event of events) act(JSON.parse(JSON.stringify(event)) as AGUIEvent)
    const finished = events.at(-1)
    return finished?.type === 'RUN_FINISHED' ? finished.outcome?.type : finished?.type
  }
  return {
    warnings,
    act,
    run,
    say: (text: string) => {
      act({
        type: 'user-message',
        message: { id: `u${++count}`, role: 'user', parts: [{ type: 'text', text }] },
      })
      return run()
    },
    pending: () => pendingIn(readMessages(state)).map((part) => part.approval?.id ?? ''),
    calls: () =>
      readMessages(state).flatMap((message) =>
        message.parts.flatMap((part) =>
          part.type === 'tool-call'
            ? [{ id: part.id, state: part.state, output: part.output, error: part.error }]
            : [],
        ),
      ),
    texts: () =>
      readMessages(state).flatMap((message) =>
        message.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])),
      ),
  }
}

/** As the server's door lets it in. */
const overHttp = (request: RunAgentInput) =>
  readRunInput(
    new Request('http://localhost/chat', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(request),
    }),
  )

const open = (turns: readonly ScriptedTurn[], tools: AgentOptions['tools'], context = { subject: 'ann' }) => {
  const { agent, model } = testAgent(turns, { tools })
  return { client: chat(agent, { context }), model }
}

test('a chained approval through core: ask, approve with an edit, ask again, deny with a reason', async () => {
  const send = counted('send', { needsApproval: true, allowEdits: true, scopes: ['once', 'session'] })
  const turns = [call(['c1', 'send', { to: 'a' }]), call(['c2', 'send', { to: 'b' }]), say('as you wish')]
  const { client, model } = open(turns, [send.tool])
  expect(await client.say('go')).toBe('interrupt')
  const [first = ''] = client.pending()
  client.act({ type: 'answer', approvalId: first, approved: true, input: { to: 'z' } })
  expect(await client.run()).toBe('interrupt')
  const [second = ''] = client.pending()
  client.act({ type: 'answer', approvalId: second, approved: false, reason: 'no more' })
  expect(await client.run()).toBe('success')
  expect(client.calls()).toMatchObject([
    { id: 'c1', state: 'complete', output: { done: 'send' } },
    { id: 'c2', state: 'denied', error: { message: 'no more' } },
  ])
  expect(client.texts()).toEqual(['go', 'as you wish'])
  expect(send.runs).toEqual([{ to: 'z' }])
  expect(model.requests.length).toBe(3)
  expect(client.warnings).toEqual([])
  expect(client.pending()).toEqual([])
})

test('F54 an edit that does not fit leaves the question open, says what is wrong, and can be corrected', async () => {
  const schema = z.looseObject({ n: z.number().max(5, 'at most 5') })
  const send = counted('send', { needsApproval: true, allowEdits: true, input: schema })
  const { client, model } = open([call(['c1', 'send', { n: 1 }]), say('done')], [send.tool])
  await client.say('go')
  const [approvalId = ''] = client.pending()
  const reason = 'The arguments for send do not fit: n: at most 5'
  for (const n of [9, 8]) {
    client.act({ type: 'answer', approvalId, approved: true, input: { n } })
    expect(await client.run()).toBe('interrupt')
    expect(client.pending()).toEqual([approvalId])
    expect(client.calls()).toMatchObject([
      { state: 'approval-requested', error: { message: reason, code: 'approval-edit-invalid' } },
    ])
  }
  expect([send.runs, model.requests.length]).toEqual([[], 1])
  client.act({ type: 'answer', approvalId, approved: true, input: { n: 5 } })
  expect(await client.run()).toBe('success')
  expect(client.calls()).toMatchObject([{ state: 'complete' }])
  expect(client.calls()[0]?.error).toBeUndefined()
  expect([send.runs, client.texts().at(-1), client.warnings]).toEqual([[{ n: 5 }], 'done', []])
})

test('several requests beside a safe call, answered differently, in one continuation', async () => {
  const send = counted('send', { needsApproval: true })
  const look = counted('look')
  const turns = [
    call(['c1', 'look', {}], ['c2', 'send', { n: 2 }], ['c3', 'send', { n: 3 }]),
    say('done'),
    say('again'),
  ]
  const { client } = open(turns, [send.tool, look.tool])
  await client.say('go')
  const [one = '', two = ''] = client.pending()
  client.act({ type: 'answer', approvalId: one, approved: true })
  client.act({ type: 'answer', approvalId: two, approved: false })
  expect(await client.run()).toBe('success')
  expect(await client.say('and?')).toBe('success')
  expect(client.calls().map(({ state }) => state)).toEqual(['complete', 'complete', 'denied'])
  expect(send.runs).toEqual([{ n: 2 }])
  expect(client.warnings).toEqual([])
})

test('S2.63 the person goes on: the request is cancelled on both sides', async () => {
  const send = counted('send', { needsApproval: true })
  const { client, model } = open([call(['c1', 'send', {}]), say('ok'), say('fine')], [send.tool])
  await client.say('go')
  client.act({ type: 'close', ids: client.pending(), because: 'moved-on' })
  expect(await client.say('never mind')).toBe('success')
  expect(await client.say('really')).toBe('success')
  expect(client.calls()).toMatchObject([{ state: 'cancelled' }])
  expect(model.requests[1]?.messages.at(-2)?.content).toMatchObject([
    { outcome: { kind: 'cancelled', reason: 'user moved on' } },
  ])
  expect(client.warnings).toEqual([])
})

test('E.11 an approved client tool is handed out and its output goes on', async () => {
  const locate = clientTool({
    name: 'locate',
    description: 'x',
    input: z.object({}),
    needsApproval: true,
    execute: () => 'here',
  })
  const { client, model } = open([call(['c1', 'locate', {}]), say('there')], [locate])
  await client.say('go')
  const [id = ''] = client.pending()
  client.act({ type: 'answer', approvalId: id, approved: true })
  expect(await client.run()).toBe('success')
  client.act({ type: 'tool-started', toolCallId: 'c1' })
  client.act({ type: 'tool-output', toolCallId: 'c1', messageId: 'out', output: 'here' })
  expect(await client.run()).toBe('success')
  expect(client.calls()).toMatchObject([{ state: 'complete', output: 'here' }])
  expect(client.texts()).toEqual(['go', 'there'])
  expect(model.requests[1]?.messages.at(-1)?.content).toMatchObject([
    { outcome: { kind: 'ok', value: 'here' } },
  ])
  expect(client.warnings).toEqual([])
})

test('a refused answer closes the card; the conversation goes on without a second result', async () => {
  let now = 1_700_000_000_000
  const send = counted('send', { needsApproval: true, expiresIn: 10 })
  const { agent } = testAgent([call(['c1', 'send', {}]), say('too late'), say('yes')], {
    tools: [send.tool],
    now: () => now,
  })
  const client = chat(agent)
  await client.say('go')
  const [id = ''] = client.pending()
  client.act({ type: 'answer', approvalId: id, approved: true })
  now += 11_000
  expect(await client.run()).toBe('success')
  expect(client.calls()).toMatchObject([{ state: 'cancelled', error: { code: 'approval-expired' } }])
  expect(await client.say('next')).toBe('success')
  expect(client.texts()).toEqual(['go', 'too late', 'next', 'yes'])
  expect(send.runs).toEqual([])
  expect(client.warnings).toEqual([])
})

test('a turn with more calls than a message may have is cut off there, is told of, and the chat goes on', async () => {
  const many = Array.from({ length: 300 }, (_, i): [string, string, unknown] => [`c${i}`, 'look', {}])
  for (const needsApproval of [false, true]) {
    const look = counted('look', { needsApproval })
    const told: string[] = []
    const { agent } = testAgent([call(...many), say('done'), say('again')], {
      tools: [look.tool],
      warn: (message) => told.push(message),
    })
    const client = chat(agent)
    const ids = () => client.calls().map(({ id }) => id)
    expect(await client.say('go')).toBe(needsApproval ? 'interrupt' : 'success')
    for (const approvalId of client.pending()) client.act({ type: 'answer', approvalId, approved: true })
    if (needsApproval) expect(await client.run()).toBe('success')
    expect(ids()).toEqual(many.slice(0, 256).map(([id]) => id))
    expect(client.calls().every(({ state }) => state === 'complete')).toBe(true)
    expect(look.runs).toHaveLength(256)
    expect(told.filter((message) => message.includes('more than 256 calls in one turn'))).toHaveLength(1)
    expect(await client.say('on')).toBe('success')
    expect(client.texts()).toEqual(['go', 'done', 'on', 'again'])
    expect(client.warnings).toEqual([])
  }
})
