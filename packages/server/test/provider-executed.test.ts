import type { AGUIEvent, Message } from '@countersign/core'
import {
  answerQueue,
  type ModelEvent,
  type ModelMessage,
  memoryLedger,
  scriptedModel,
  statelessLedger,
} from '@countersign/server'
import { expect, test } from 'vitest'
import {
  type Asked,
  answer,
  collect,
  counted,
  fold,
  input,
  last,
  refusals,
  requests,
  results,
  say,
  testAgent,
  types,
  user,
} from './support.js'

/** The provider asks, under an id of its own, before it calls a tool of an MCP server of its own. */
const asks = (approvalId: string, name = 'search_docs', id = ''): ModelEvent => ({
  type: 'tool-call',
  id,
  name,
  arguments: '{"q":"x"}',
  providerExecuted: true,
  approval: { id: approvalId, state: 'requested' },
  metadata: { item: approvalId },
})

/** The provider runs what it asked about, under another id, and tells how it went. */
const runs = (approvalId: string, id: string, value: unknown): ModelEvent[] => [
  {
    type: 'tool-call',
    id,
    name: 'search_docs',
    arguments: '{"q":"x"}',
    providerExecuted: true,
    approval: { id: approvalId, state: 'answered' },
  },
  { type: 'tool-result', toolCallId: id, outcome: { kind: 'ok', value }, metadata: { item: id } },
]

const finish: ModelEvent = { type: 'finish', reason: 'stop' }

const toldOf = (messages: readonly ModelMessage[] = []) =>
  messages.flatMap((message) => (message.role === 'tool' ? message.content : []))
const toldApprovals = (messages: readonly ModelMessage[] | undefined) =>
  toldOf(messages).filter(({ type }) => type === 'approval-response')

async function first(agent: ReturnType<typeof testAgent>['agent']) {
  const question = [user('go')]
  const events = await collect(agent, input(question))
  const [asked] = requests(events)
  if (asked === undefined) throw new Error(`nothing was asked: ${types(events).join(' ')}`)
  return { events, asked, history: fold(question, events) }
}

const local = () => counted('search_docs')

for (const streamed of [false, true]) {
  const turn = (): ModelEvent[] => {
    const whole = asks('mcpr_1')
    if (!streamed || whole.type !== 'tool-call') return [whole, finish]
    const { name, approval, metadata } = whole
    return [
      { type: 'tool-call-start', id: 'item_1', name, providerExecuted: true, ...(approval && { approval }) },
      { type: 'tool-call-delta', id: 'item_1', delta: '{"q":' },
      { type: 'tool-call-delta', id: 'item_1', delta: '"x"}' },
      { type: 'tool-call-end', id: 'item_1', ...(metadata && { metadata }) },
      finish,
    ]
  }
  const how = streamed ? 'streamed' : 'whole'

  test(`S0.54 S0.55 S0.56 a provider's request becomes a provider-executed call and a request with the provider's own id (${how})`, async () => {
    const tool = local()
    const { agent } = testAgent([turn()], { tools: [tool.tool] })
    const { events, asked, history } = await first(agent)
    expect(types(events)).toEqual([
      'RUN_STARTED',
      'TOOL_CALL_START',
      ...(streamed ? ['TOOL_CALL_ARGS'] : []),
      'TOOL_CALL_ARGS',
      'TOOL_CALL_END',
      'CUSTOM approval-requested',
      'RUN_FINISHED',
    ])
    expect(asked).toMatchObject({ toolName: 'search_docs', input: { q: 'x' } })
    expect(asked.approval).toMatchObject({ id: 'mcpr_1', options: ['deny', 'once'] })
    expect(asked.toolCallId).not.toBe('')
    expect(asked.toolCallId).not.toContain('mcpr_1')
    const call = history.flatMap((message) =>
      message.role === 'assistant' ? (message.toolCalls ?? []) : [],
    )[0]
    expect(call).toMatchObject({
      id: asked.toolCallId,
      metadata: { countersign: { providerExecuted: true, providerApproval: 'mcpr_1' } },
    })
    expect(last(events)).toMatchObject({ outcome: { type: 'interrupt', interrupts: [{ id: 'mcpr_1' }] } })
    expect(tool.runs).toEqual([])
    const generated = await testAgent([turn()], { tools: [tool.tool] }).agent.generate(input([user('go')]))
    const part = generated.messages.at(-1)?.parts.find(({ type }) => type === 'tool-call')
    expect(part).toMatchObject({
      state: 'approval-requested',
      providerExecuted: true,
      approval: { id: 'mcpr_1' },
    })
  })
}

test('S0.57 S0.59 S0.60 a yes is forwarded once, nothing runs here, and the later run is the same call', async () => {
  const tool = local()
  const turns = [
    [asks('mcpr_1'), finish],
    [...runs('mcpr_1', 'mcp_1', { hits: 3 }), ...say('3 hits')],
    say('ok'),
  ]
  const { agent, model } = testAgent(turns, { tools: [tool.tool] })
  const { asked, history } = await first(agent)
  const resume = [answer(asked, { approved: true, reason: 'fine' })]
  const events = await collect(agent, input(history, { resume }))
  expect(toldOf(model.requests[1]?.messages)).toEqual([
    { type: 'approval-response', approvalId: 'mcpr_1', toolCallId: asked.toolCallId, approved: true },
  ])
  expect(model.requests[1]?.messages.at(-2)).toMatchObject({
    role: 'assistant',
    content: [{ type: 'tool-call', providerExecuted: true, approval: { id: 'mcpr_1', state: 'requested' } }],
  })
  expect(types(events)).not.toContain('TOOL_CALL_START')
  expect(results(events)).toMatchObject([{ id: asked.toolCallId, content: { hits: 3 } }])
  expect(tool.runs).toEqual([])
  const after = [...fold(history, events), user('more?')]
  await collect(agent, input(after))
  expect(toldOf(model.requests[2]?.messages)).toMatchObject([
    { type: 'tool-result', toolCallId: asked.toolCallId, outcome: { kind: 'ok', value: { hits: 3 } } },
  ])
})

test('S0.58 S0.61 a no is forwarded with its reason in the place of a result, also in later requests', async () => {
  const { agent, model } = testAgent([[asks('mcpr_1'), finish], say('then not'), say('ok')])
  const { asked, history } = await first(agent)
  const resume = [answer(asked, { approved: false, reason: 'not there' })]
  const events = await collect(agent, input(history, { resume }))
  const told = {
    type: 'approval-response',
    approvalId: 'mcpr_1',
    toolCallId: asked.toolCallId,
    approved: false,
    reason: 'not there',
  }
  expect(toldOf(model.requests[1]?.messages)).toEqual([told])
  expect(results(events)).toMatchObject([
    {
      id: asked.toolCallId,
      content: { type: 'execution-denied', reason: 'not there' },
      own: { outcome: 'denied' },
    },
  ])
  await collect(agent, input([...fold(history, events), user('and now?')]))
  expect(toldOf(model.requests[2]?.messages)).toEqual([told])
})

const allToldYes = (requests: readonly { readonly messages: readonly ModelMessage[] }[]) =>
  requests
    .flatMap(({ messages }) => toldApprovals(messages))
    .filter((told) => 'approved' in told && told.approved)
const interruptedOf = ({ toolCallId }: Asked) => [
  { id: toolCallId, own: { outcome: 'error', code: 'interrupted' } },
]

test('S0.59 a yes is told once; repeats, one by one or at once, get the stored result', async () => {
  const turns = [
    [asks('mcpr_1'), finish],
    [...runs('mcpr_1', 'mcp_1', { hits: 3 }), ...say('3 hits')],
  ]
  for (let count = 0; count < 20; count++) turns.push(say('ok'))
  const { agent, model } = testAgent(turns)
  const { asked, history } = await first(agent)
  const resume = [answer(asked, { approved: true })]
  const send = () => collect(agent, input(history, { resume }))
  const all = [...(await Promise.all(Array.from({ length: 10 }, send))), await send(), await send()]
  for (const events of all)
    expect(results(events)).toMatchObject([{ id: asked.toolCallId, content: { hits: 3 } }])
  expect(allToldYes(model.requests)).toHaveLength(1)
})

const endings: Record<string, ModelEvent[] | (() => ModelEvent[])> = {
  'says nothing of it': say('I wait.'),
  'breaks off': [{ type: 'text-delta', delta: 'I' }],
  'fails before its first event': () => {
    throw new Error('no connection')
  },
}
for (const [how, turn] of Object.entries(endings)) {
  test(`a provider that was told yes and ${how} leaves the call interrupted, and is not told again`, async () => {
    const ledger = memoryLedger()
    const turns = [() => [asks('mcpr_1'), finish], typeof turn === 'function' ? turn : () => turn]
    const told = testAgent(turns, { approvals: { ledger } })
    const { asked, history } = await first(told.agent)
    const resume = [answer(asked, { approved: true })]
    const events = await collect(told.agent, input(history, { resume }))
    expect(results(events)).toMatchObject(interruptedOf(asked))
    const next = testAgent([say('ok'), say('ok'), say('ok')], { approvals: { ledger } })
    expect(results(await collect(next.agent, input(history, { resume })))).toMatchObject(interruptedOf(asked))
    expect(results(await collect(next.agent, input(history)))).toMatchObject(interruptedOf(asked))
    const after = kept(fold(history, events), asked)
    expect(results(await collect(next.agent, input([...after, user('and?')])))).toEqual([])
    expect(allToldYes([...told.model.requests, ...next.model.requests])).toHaveLength(1)
  })
}

test('a history that holds the call twice has its yes told once, also while it still waits to be told', async () => {
  const ledger = memoryLedger()
  const open = (turns: ModelEvent[][]) => testAgent(turns, { approvals: { ledger } })
  const { asked, history } = await first(open([[asks('mcpr_1'), finish]]).agent)
  const twice = [
    ...history,
    ...history.slice(1).map((message) => ({ ...message, id: `again_${message.id}` })),
  ]
  const resume = [answer(asked, { approved: true })]
  await collect(open([]).agent, input(history, { resume }), { maxSteps: 0 })
  const { agent, model } = open([[...runs('mcpr_1', 'mcp_1', 1), finish], say('ok'), say('ok')])
  for (const time of ['first', 'second', 'third']) {
    const events = await collect(agent, input(twice, { resume }))
    expect(new Set(results(events).map(({ content }) => content)), time).toEqual(new Set([1]))
  }
  expect(allToldYes(model.requests)).toHaveLength(1)
})

test('a yes that no model was called with is told later, once', async () => {
  const send = counted('send', { needsApproval: true })
  const ledger = memoryLedger()
  const open = (turns: ModelEvent[][], maxSteps?: number) =>
    testAgent(turns, {
      tools: [send.tool],
      approvals: { ledger },
      ...(maxSteps !== undefined && { maxSteps }),
    })
  const turn: ModelEvent[] = [
    { type: 'tool-call', id: 'c1', name: 'send', arguments: '{}' },
    asks('mcpr_1'),
    finish,
  ]
  const asking = open([turn])
  const question = [user('go')]
  const events = await collect(asking.agent, input(question))
  const [ours, theirs] = requests(events)
  if (ours === undefined || theirs === undefined) throw new Error('not asked')
  const history = fold(question, events)
  // the other question is still open
  const one = [answer(theirs, { approved: true })]
  expect(requests(await collect(asking.agent, input(history, { resume: one })))).toMatchObject([
    { approval: { id: ours.approval.id } },
  ])
  expect(asking.model.requests).toHaveLength(1)
  // the run is stopped before the model is called
  const both = [answer(ours, { approved: true }), ...one]
  const stopped = AbortSignal.abort()
  await collect(asking.agent, input(history, { resume: both }), { signal: stopped })
  const later = open([[...runs('mcpr_1', 'mcp_1', 'found'), ...say('both')], say('ok')])
  const told = await collect(later.agent, input(history, { resume: [answer(ours, { approved: true })] }))
  expect(results(told).map(({ content }) => content)).toEqual([{ done: 'send' }, 'found'])
  await collect(later.agent, input(history, { resume: both }))
  expect(allToldYes(later.model.requests)).toHaveLength(1)
  expect(send.runs).toHaveLength(1)
})

test('with a ledger that keeps nothing a yes is told, and can be repeated', async () => {
  const turns = [
    [asks('mcpr_1'), finish],
    [...runs('mcpr_1', 'mcp_1', 1), finish],
  ]
  const ledger = statelessLedger({ acceptReplay: true })
  const { agent } = testAgent([...turns, turns[1] ?? []], { approvals: { ledger } })
  const { asked, history } = await first(agent)
  const resume = [answer(asked, { approved: true })]
  for (const time of ['once', 'again'])
    expect(results(await collect(agent, input(history, { resume }))), time).toMatchObject([{ content: 1 }])
})

test('a ledger that fails before the provider is told ends the run, and the yes can still be told', async () => {
  const whole = memoryLedger()
  let broken = true
  const reclaim: typeof whole.reclaim = (...args) =>
    broken ? Promise.reject(new Error('down')) : whole.reclaim(...args)
  const { agent, model } = testAgent(
    [
      [asks('mcpr_1'), finish],
      [...runs('mcpr_1', 'mcp_1', 1), finish],
    ],
    {
      approvals: { ledger: { ...whole, reclaim } },
    },
  )
  const { asked, history } = await first(agent)
  const resume = [answer(asked, { approved: true })]
  const failed = await collect(agent, input(history, { resume }))
  expect(last(failed)).toMatchObject({ type: 'RUN_ERROR', code: 'ledger-unavailable' })
  broken = false
  expect(results(await collect(agent, input(history, { resume })))).toMatchObject([{ content: 1 }])
  expect(allToldYes(model.requests)).toHaveLength(1)
})

/** The history as a Countersign client keeps it: the answer is with the call. */
function kept(messages: readonly Message[], { toolCallId, approval }: Asked): Message[] {
  return messages.map((message) =>
    message.role !== 'assistant'
      ? message
      : {
          ...message,
          ...(message.toolCalls && {
            toolCalls: message.toolCalls.map((call) =>
              call.id !== toolCallId
                ? call
                : {
                    ...call,
                    metadata: {
                      countersign: {
                        ...Object(call.metadata?.countersign),
                        approval: { id: approval.id, approved: true },
                      },
                    },
                  },
            ),
          }),
        },
  )
}

test('S0.60 the same approval is told once in a request, however often its call stands in the history', async () => {
  const { agent, model } = testAgent([[asks('mcpr_1'), finish], say('no'), say('ok')])
  const { asked, history } = await first(agent)
  const denied = await collect(agent, input(history, { resume: [answer(asked, { approved: false })] }))
  const after = fold(history, denied)
  const twice = [...after, ...after.slice(1).map((message) => ({ ...message, id: `again_${message.id}` }))]
  await collect(agent, input([...twice, user('x')]))
  expect(toldApprovals(model.requests.at(-1)?.messages).length).toBe(1)
})

test('S0.62 approvals of our own never reach the model, answered or not', async () => {
  const send = counted('send', { needsApproval: true })
  const turns: ModelEvent[][] = [
    [{ type: 'tool-call', id: 'c1', name: 'send', arguments: '{}' }, finish],
    say('sent'),
    [{ type: 'tool-call', id: 'c2', name: 'send', arguments: '{}' }, finish],
    say('not sent'),
  ]
  const { agent, model } = testAgent(turns, { tools: [send.tool] })
  const { asked, history } = await first(agent)
  const done = fold(
    history,
    await collect(agent, input(history, { resume: [answer(asked, { approved: true })] })),
  )
  const again = [...done, user('again')]
  const events = await collect(agent, input(again))
  const [second] = requests(events)
  if (second === undefined) throw new Error('not asked')
  const denied = [answer(second, { approved: false })]
  await collect(agent, input(fold(again, events), { resume: denied }))
  for (const { messages } of model.requests) {
    expect(JSON.stringify(messages)).not.toContain('approval')
    expect(toldApprovals(messages)).toEqual([])
  }
})

test('V12 a call that the provider runs has no preview, even if a tool of that name here has one', async () => {
  let computed = 0
  const tool = counted('search_docs', {
    preview: () => {
      computed++
      return { kind: 'text', text: 'what the tool of this server would do' }
    },
  })
  const { agent, model } = testAgent([[asks('mcpr_1'), finish], say('done')], { tools: [tool.tool] })
  const { asked, events, history } = await first(agent)
  expect(JSON.stringify(events)).not.toContain('preview')
  const yes = answer(asked, { approved: true })
  await collect(agent, input(history, { resume: [yes] }))
  expect(toldApprovals(model.requests.at(-1)?.messages)).toMatchObject([{ approved: true }])
  expect([computed, tool.runs]).toEqual([0, []])
})

test('S0.63 of one call of ours and one of the provider, both approved, one runs here and one is forwarded', async () => {
  const send = counted('send', { needsApproval: true })
  const turns: ModelEvent[][] = [
    [{ type: 'tool-call', id: 'c1', name: 'send', arguments: '{}' }, asks('mcpr_1'), finish],
    [...runs('mcpr_1', 'mcp_1', 'found'), ...say('both')],
  ]
  const { agent, model } = testAgent(turns, { tools: [send.tool] })
  const question = [user('go')]
  const asking = await collect(agent, input(question))
  const both = requests(asking)
  expect(both.map(({ toolName }) => toolName)).toEqual(['send', 'search_docs'])
  const resume = both.map((asked) => answer(asked, { approved: true }))
  const events = await collect(agent, input(fold(question, asking), { resume }))
  expect(send.runs.length).toBe(1)
  expect(toldOf(model.requests[1]?.messages).map(({ type }) => type)).toEqual([
    'approval-response',
    'tool-result',
  ])
  expect(results(events).map(({ content }) => content)).toEqual([{ done: 'send' }, 'found'])
})

test('S0.65 metadata of a provider comes back to a model of that provider, and to no other', async () => {
  const seen = async (id: string, history: readonly Message[]) => {
    const model = { ...scriptedModel([say('ok')]), id }
    const requestsOf: unknown[] = []
    const stream: typeof model.stream = (request, options) => {
      requestsOf.push(...request.messages)
      return model.stream(request, options)
    }
    await collect(testAgent([], { model: { ...model, stream } }).agent, input([...history, user('x')]))
    return JSON.stringify(requestsOf)
  }
  const asking = scriptedModel([
    [
      { type: 'text-delta', delta: 'I look.' },
      { type: 'text-end', metadata: { item: 'text_item' } },
      {
        type: 'tool-call',
        id: 'c1',
        name: 'a',
        arguments: '{}',
        providerExecuted: true,
        metadata: { item: 'call_item' },
      },
      {
        type: 'tool-result',
        toolCallId: 'c1',
        outcome: { kind: 'ok', value: 1 },
        metadata: { item: 'result_item' },
      },
      finish,
    ],
  ])
  const { agent } = testAgent([], { model: { ...asking, id: 'openai/large' } })
  const question = [user('go')]
  const history = fold(question, await collect(agent, input(question))).map((message) =>
    // the fold of these tests keeps no metadata of texts
    message.role === 'assistant'
      ? { ...message, metadata: { countersign: { provider: { openai: { item: 'text_item' } } } } }
      : message,
  )
  const same = await seen('openai/small', history)
  for (const item of ['text_item', 'call_item', 'result_item']) expect(same).toContain(item)
  for (const other of ['anthropic/large', 'toString', '__proto__', 'constructor'])
    expect(await seen(other, history)).not.toContain('_item')
})

test("a provider-executed call cannot be passed off as one of ours, nor one of ours as the provider's", async () => {
  const tool = local()
  const turns = () => [[asks('mcpr_1'), finish], say('ok')]
  const { agent, model } = testAgent(turns(), { tools: [tool.tool] })
  const { asked, history } = await first(agent)
  const strip = (messages: readonly Message[]) => recall(messages, (own) => ({ token: own.token }))
  // with its token the ledger's word puts the flag back, and the call goes to the provider
  await collect(agent, input(strip(history), { resume: [answer(asked, { approved: true })] }))
  expect(tool.runs).toEqual([])
  expect(toldApprovals(model.requests[1]?.messages)).toMatchObject([{ approvalId: 'mcpr_1', approved: true }])

  const gated = counted('search_docs', { needsApproval: true })
  const ours = testAgent(
    [[{ type: 'tool-call', id: 'c1', name: 'search_docs', arguments: '{}' }, finish], say('ok')],
    { tools: [gated.tool] },
  )
  const own = await first(ours.agent)
  const claimed = recall(own.history, (before) => ({
    ...before,
    providerExecuted: true,
    providerApproval: own.asked.approval.id,
  }))
  const events = await collect(
    ours.agent,
    input(claimed, { resume: [answer(own.asked, { approved: true })] }),
  )
  expect(refusals(events)).toMatchObject([{ code: 'approval-tampered' }])
  expect(
    toldApprovals(ours.model.requests[1]?.messages).filter((told) => 'approved' in told && told.approved),
  ).toEqual([])
  expect(gated.runs).toEqual([])
})

function recall(
  messages: readonly Message[],
  change: (own: Record<string, unknown>) => Record<string, unknown>,
): Message[] {
  return messages.map((message) =>
    message.role !== 'assistant' || message.toolCalls === undefined
      ? message
      : {
          ...message,
          toolCalls: message.toolCalls.map((call) => ({
            ...call,
            metadata: { countersign: change(Object(call.metadata?.countersign)) },
          })),
        },
  )
}

test('a history that says yes for itself forwards nothing', async () => {
  const { agent, model } = testAgent([[asks('mcpr_1'), finish], say('ok')])
  const { asked, history } = await first(agent)
  const forged = recall(history, ({ token: _, ...own }) => ({
    ...own,
    approval: { id: asked.approval.id, approved: true },
  }))
  const events = await collect(agent, input(forged))
  expect(refusals(events)).toMatchObject([{ code: 'approval-not-found' }])
  for (const { messages } of model.requests)
    expect(toldApprovals(messages).filter((told) => 'approved' in told && told.approved)).toEqual([])
})

test('a changed argument, another user and an expired request forward nothing', async () => {
  let now = 1_700_000_000_000
  const { agent, model } = testAgent([[asks('mcpr_1'), finish], say('ok'), say('ok')], { now: () => now })
  const { asked, history } = await first(agent)
  const resume = [answer(asked, { approved: true })]
  const changed = structuredClone(history)
  for (const message of changed)
    if (message.role === 'assistant')
      for (const call of message.toolCalls ?? []) call.function.arguments = '{"q":"y"}'
  expect(refusals(await collect(agent, input(changed, { resume })))).toMatchObject([
    { code: 'approval-tampered' },
  ])
  const bob = await collect(agent, input(history, { resume }), { context: { subject: 'bob' } })
  expect(refusals(bob)).toMatchObject([{ code: 'approval-not-yours' }])
  now += 25 * 60 * 60 * 1000
  expect(refusals(await collect(agent, input(history, { resume })))).toMatchObject([
    { code: 'approval-expired' },
  ])
  for (const { messages } of model.requests)
    expect(toldApprovals(messages).filter((told) => 'approved' in told && told.approved)).toEqual([])
})

test("a person who moves on closes the provider's request with a no", async () => {
  const { agent, model } = testAgent([[asks('mcpr_1'), finish], say('ok')])
  const { asked, history } = await first(agent)
  const events = await collect(agent, input([...history, user('something else')]))
  expect(results(events)).toMatchObject([{ id: asked.toolCallId, own: { outcome: 'cancelled' } }])
  expect(toldApprovals(model.requests[1]?.messages)).toMatchObject([
    { approved: false, reason: 'user moved on' },
  ])
})

test('policy can block what the provider asks for: nobody is asked, and the provider is told in the same run', async () => {
  const seen: unknown[] = []
  const policy = ({ location, toolName }: { location: string; toolName: string }) => {
    seen.push([location, toolName])
    return { decision: 'block', reason: 'no searching' } as const
  }
  const { agent, model } = testAgent([[asks('mcpr_1'), finish], say('then not')], { approvals: { policy } })
  const events = await collect(agent, input([user('go')]))
  expect(seen).toEqual([['provider', 'search_docs']])
  expect(requests(events)).toEqual([])
  expect(toldApprovals(model.requests[1]?.messages)).toMatchObject([
    { approved: false, reason: 'no searching' },
  ])
})

test('a request that cannot be issued is told no, and never runs unasked', async () => {
  const ledger = { ...memoryLedger(), id: 'full', issue: async () => ({ status: 'full' }) as const }
  const { agent, model } = testAgent([[asks('mcpr_1'), finish], say('ok')], { approvals: { ledger } })
  const events = await collect(agent, input([user('go')]))
  expect(requests(events)).toEqual([])
  expect(toldApprovals(model.requests[1]?.messages)).toMatchObject([{ approved: false }])
})

test("with runTools: false a provider's request comes back as a call and nothing else", async () => {
  const { agent } = testAgent([[asks('mcpr_1'), finish]], { runTools: false })
  const events: readonly AGUIEvent[] = await collect(agent, input([user('go')]))
  expect([requests(events).length, results(events).length]).toEqual([0, 0])
  expect(last(events)).toMatchObject({ outcome: { type: 'success' } })
})

for (const approved of [true, false]) {
  test(`over a live channel the run goes on with the ${approved ? 'yes' : 'no'} for the provider`, async () => {
    const turns = [
      [asks('mcpr_1'), finish],
      approved ? [...runs('mcpr_1', 'mcp_1', 3), ...say('3')] : say('then not'),
    ]
    const { agent, model } = testAgent(turns)
    const answers = answerQueue()
    void answers.put({ interruptId: 'mcpr_1', status: 'resolved', payload: { approved } })
    const events = await collect(agent, input([user('go')]), { answers })
    expect(toldApprovals(model.requests[1]?.messages)).toMatchObject([{ approvalId: 'mcpr_1', approved }])
    expect(results(events)).toMatchObject([
      { id: requests(events)[0]?.toolCallId, content: approved ? 3 : { type: 'execution-denied' } },
    ])
    expect(last(events)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } })
  })
}

test('a yes that waits to be told is found in the ledger, where the client did not keep the decision', async () => {
  const ledger = memoryLedger()
  const { agent } = testAgent([[asks('mcpr_1'), finish]], { approvals: { ledger } })
  const { asked, history } = await first(agent)
  const resume = [answer(asked, { approved: true })]
  await collect(agent, input(history, { resume }), { maxSteps: 0 })
  const later = testAgent([[...runs('mcpr_1', 'mcp_1', 1), finish]], { approvals: { ledger } })
  await collect(later.agent, input(history))
  expect(allToldYes(later.model.requests)).toMatchObject([{ approvalId: 'mcpr_1' }])
})

test('a provider that names no usable id for its request ends the run', async () => {
  for (const id of ['', 'x'.repeat(300)]) {
    const { agent } = testAgent([[asks(id), finish]])
    expect(last(await collect(agent, input([user('go')])))).toMatchObject({
      type: 'RUN_ERROR',
      code: 'model-failed',
    })
  }
})
