import { type AGUIEvent, CountersignError, type RunAgentInput } from '@countersign/core'
import {
  type Agent,
  type AgentOptions,
  type AnswerQueue,
  type AuditEntry,
  answerQueue,
  memoryLedger,
  type RunOptions,
} from '@countersign/server'
import { expect, test } from 'vitest'
import * as z from 'zod'
import { full } from '../../../test/full.js'
import {
  type Asked,
  answer,
  call,
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

const gated = { needsApproval: true } as const

/** A run on a live channel, as it is read by somebody who answers meanwhile. */
function live(agent: Agent, given: RunAgentInput = input([user('go')]), options: RunOptions = {}) {
  const answers = answerQueue()
  const events: AGUIEvent[] = []
  const watchers = new Set<() => void>()
  const done = (async () => {
    for await (const event of agent.run(given, { ...options, answers })) {
      events.push(event)
      for (const watcher of [...watchers]) watcher()
    }
  })()
  /** Once this many requests were seen. */
  const asked = (count: number): Promise<readonly Asked[]> =>
    new Promise((resolve) => {
      const look = () => {
        const seen = requests(events)
        if (seen.length < count) return
        watchers.delete(look)
        resolve(seen)
      }
      watchers.add(look)
      look()
    })
  return { answers, events, done, asked }
}

/** No room for any result. */
const noRoom = () => {
  throw new CountersignError('too-many-runs', 'Full.')
}

const yes = (asked: Asked) => answer(asked, { approved: true })
const no = (asked: Asked, reason?: string) => answer(asked, { approved: false, ...(reason && { reason }) })
const at = (asked: readonly Asked[], index: number): Asked => {
  const found = asked[index]
  if (found === undefined) throw new Error(`${asked.length} requests were made`)
  return found
}
const isOpen = (events: readonly AGUIEvent[]) => !types(events).includes('RUN_FINISHED')

test('S2.22 S2.24 S2.25 a safe call runs before any answer, and each gated call waits for its own answer alone', async () => {
  const look = counted('look')
  const send = counted('send', gated)
  const turns = [
    call(['c1', 'send', { to: 'a' }], ['c2', 'look', {}], ['c3', 'send', { to: 'b' }]),
    say('ok'),
  ]
  const { agent, model } = testAgent(turns, { tools: [look.tool, send.tool] })
  const run = live(agent)
  const asked = await run.asked(2)
  await expect.poll(() => look.runs.length).toBe(1)
  expect(send.runs).toEqual([])

  expect(await run.answers.put(yes(at(asked, 1)))).toEqual({ status: 'taken' })
  await expect.poll(() => send.runs).toEqual([{ to: 'b' }])
  await expect.poll(() => results(run.events).map(({ id }) => id)).toEqual(['c2', 'c3'])
  expect(isOpen(run.events)).toBe(true)

  await run.answers.put(no(at(asked, 0), 'not now'))
  await run.done
  expect(send.runs).toEqual([{ to: 'b' }])
  expect(results(run.events).find(({ id }) => id === 'c1')).toMatchObject({
    content: { type: 'execution-denied', reason: 'not now' },
    own: { outcome: 'denied' },
  })
  expect(last(run.events)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } })
  expect(model.requests).toHaveLength(2)
})

test('S2.23 one request for each gated call, in their order, with call, tool, arguments and approval', async () => {
  const send = counted('send', gated)
  const { agent } = testAgent([call(['c1', 'send', { to: 'a' }], ['c2', 'send', { to: 'b' }]), say('ok')], {
    tools: [send.tool],
  })
  const run = live(agent)
  const asked = await run.asked(2)
  expect(asked.map(({ toolCallId, toolName, input }) => [toolCallId, toolName, input])).toEqual([
    ['c1', 'send', { to: 'a' }],
    ['c2', 'send', { to: 'b' }],
  ])
  expect(new Set(asked.map(({ approval }) => approval.id)).size).toBe(2)
  for (const one of asked) await run.answers.put(yes(one))
  await run.done
  expect(requests(run.events)).toHaveLength(2)
})

test('S2.26 an answer that came before anybody read the request counts', async () => {
  const send = counted('send', gated)
  const generateId = () => 'approval_known'
  const { agent } = testAgent([call(['c1', 'send', {}]), say('ok')], {
    tools: [send.tool],
    approvals: { generateId },
  })
  const answers = answerQueue()
  const early = answers.put({
    interruptId: 'approval_known',
    status: 'resolved',
    payload: { approved: true },
  })
  const events = await collect(agent, input([user('go')]), { answers })
  expect(await early).toEqual({ status: 'taken' })
  expect(send.runs).toHaveLength(1)
  expect(last(events)).toMatchObject({ outcome: { type: 'success' } })
})

test('S2.27 with one of two answers the model is not called again, with both it is', async () => {
  const send = counted('send', gated)
  const { agent, model } = testAgent([call(['c1', 'send', {}], ['c2', 'send', {}]), say('ok')], {
    tools: [send.tool],
  })
  const run = live(agent)
  const asked = await run.asked(2)
  expect(model.requests).toHaveLength(1)
  await run.answers.put(yes(at(asked, 0)))
  await expect.poll(() => results(run.events).length).toBe(1)
  expect(model.requests).toHaveLength(1)
  await run.answers.put(yes(at(asked, 1)))
  await run.done
  expect(model.requests).toHaveLength(2)
})

test('S2.28 three turns in one run: search and send, delete, text', async () => {
  const search = counted('search')
  const send = counted('send', gated)
  const del = counted('delete', gated)
  const turns = [
    call(['c-search', 'search', {}], ['c-send', 'send', { to: 'a' }]),
    call(['c-del', 'delete', { id: 1 }]),
    say('Done.'),
  ]
  const { agent, model } = testAgent(turns, { tools: [search.tool, send.tool, del.tool] })
  const run = live(agent)
  await run.answers.put(yes(at(await run.asked(1), 0)))
  await run.answers.put(no(at(await run.asked(2), 1), 'Out of scope.'))
  await run.done
  expect(requests(run.events).map(({ toolCallId }) => toolCallId)).toEqual(['c-send', 'c-del'])
  expect(results(run.events).map(({ id }) => id)).toEqual(['c-search', 'c-send', 'c-del'])
  expect(results(run.events).at(-1)?.content).toEqual({ type: 'execution-denied', reason: 'Out of scope.' })
  expect(del.runs).toEqual([])
  expect(model.requests).toHaveLength(3)
  expect(last(run.events)).toMatchObject({ metadata: { finishReason: 'stop' } })
})

test('S2.29 answers to unknown and to finished requests hold up nothing; those of nobody are refused at the end', async () => {
  const send = counted('send', gated)
  const { agent } = testAgent([call(['c1', 'send', {}], ['c2', 'send', {}]), say('ok')], {
    tools: [send.tool],
  })
  const run = live(agent)
  const asked = await run.asked(2)
  const unknown = run.answers.put({ ...yes(at(asked, 0)), interruptId: 'approval_nobody' })
  await run.answers.put(yes(at(asked, 0)))
  await expect.poll(() => results(run.events).length).toBe(1)
  await run.answers.put(yes(at(asked, 0)))
  await run.answers.put(yes(at(asked, 1)))
  await run.done
  expect(send.runs).toHaveLength(2)
  expect(await unknown).toMatchObject({ status: 'refused', code: 'run-ended' })
  expect(await run.answers.put(yes(at(asked, 0)))).toMatchObject({ status: 'refused', code: 'run-ended' })
})

test('S2.30 an answer that comes a turn early is kept for it', async () => {
  const send = counted('send', gated)
  const ids = ['approval_1', 'approval_2']
  const generateId = () => ids.shift() ?? 'approval_more'
  const { agent } = testAgent([call(['c1', 'send', {}]), call(['c2', 'send', {}]), say('ok')], {
    tools: [send.tool],
    approvals: { generateId },
  })
  const run = live(agent)
  const [first] = await run.asked(1)
  const early = run.answers.put({
    interruptId: 'approval_2',
    status: 'resolved',
    payload: { approved: true },
  })
  await run.answers.put(yes(at([first as Asked], 0)))
  await run.done
  expect(await early).toEqual({ status: 'taken' })
  expect(send.runs).toHaveLength(2)
})

test('S2.31 D9 the first answer wins: the same again is taken and does nothing, another is refused', async () => {
  const send = counted('send', gated)
  const { agent } = testAgent([call(['c1', 'send', {}], ['c2', 'send', {}]), say('ok')], {
    tools: [send.tool],
  })
  const run = live(agent)
  const asked = await run.asked(2)
  const [one, again, other] = await Promise.all([
    run.answers.put(yes(at(asked, 0))),
    run.answers.put(yes(at(asked, 0))),
    run.answers.put(no(at(asked, 0))),
  ])
  expect([one, again, other]).toMatchObject([
    { status: 'taken' },
    { status: 'taken' },
    { status: 'refused', code: 'approval-conflict' },
  ])
  await run.answers.put(yes(at(asked, 1)))
  await run.done
  expect(send.runs).toHaveLength(2)
  expect(refusals(run.events)).toEqual([])
})

test('S2.32 a run that is stopped while it waits cancels what waits, in the ledger too, and leaves a history that is well formed', async () => {
  const send = counted('send', gated)
  const { agent } = testAgent([call(['c1', 'send', {}]), say('never'), say('next')], { tools: [send.tool] })
  const stop = new AbortController()
  const given = input([user('go')])
  const run = live(agent, given, { signal: stop.signal })
  const [asked] = await run.asked(1)
  stop.abort()
  await run.done
  expect(results(run.events)).toMatchObject([
    { id: 'c1', content: { type: 'execution-cancelled', reason: 'the run was stopped' } },
  ])
  expect(last(run.events)).toMatchObject({ outcome: { type: 'cancelled' } })

  const history = fold(given.messages, run.events)
  const resume = [yes(at([asked as Asked], 0))]
  const next = await collect(agent, input([...history, user('and now?')], { resume }))
  expect(send.runs).toEqual([])
  expect(last(next)).toMatchObject({ outcome: { type: 'success' } })
})

test('S2.32 a channel that is closed cancels what waits, and the model is told', async () => {
  const send = counted('send', gated)
  const { agent, model } = testAgent([call(['c1', 'send', {}]), say('I could not ask.')], {
    tools: [send.tool],
  })
  const run = live(agent)
  await run.asked(1)
  run.answers.close()
  await run.done
  expect(send.runs).toEqual([])
  expect(model.requests).toHaveLength(2)
  expect(model.requests[1]?.messages.at(-1)).toMatchObject({
    role: 'tool',
    content: [{ outcome: { kind: 'cancelled', reason: 'the channel was closed' } }],
  })
})

test('a person who only went away comes back to the same question: it stays open, and a later request answers it', async () => {
  const send = counted('send', gated)
  const { agent } = testAgent([call(['c1', 'send', {}]), say('sent')], { tools: [send.tool] })
  const gone = new AbortController()
  const given = input([user('go')])
  const run = live(agent, given, { disconnected: gone.signal })
  const [asked] = await run.asked(1)
  // the model has ended by then
  await new Promise((resolve) => setTimeout(resolve, 20))
  gone.abort()
  await run.done
  expect(last(run.events)).toMatchObject({
    outcome: { type: 'interrupt', interrupts: [{ id: asked?.approval.id, toolCallId: 'c1' }] },
  })
  const history = fold(given.messages, run.events)
  await collect(agent, input(history, { resume: [yes(at([asked as Asked], 0))] }))
  expect(send.runs).toHaveLength(1)
})

const stopped = full ? 1000 : 200

test(`S2.33 a reader that stops leaves nothing behind: ${stopped} runs that wait`, async () => {
  const { agent } = testAgent(() => call(['c1', 'send', {}], ['c2', 'send', {}]), {
    tools: [counted('send', gated).tool],
  })
  const counts = { added: 0, removed: 0 }
  const watched = () => {
    const { signal } = new AbortController()
    const { addEventListener, removeEventListener } = signal
    signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
      counts.added++
      addEventListener.apply(signal, args)
    }
    signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
      counts.removed++
      removeEventListener.apply(signal, args)
    }
    return signal
  }
  const before = activeTimers()
  for (let i = 0; i < stopped; i++) {
    const answers = answerQueue()
    const run = agent.run(input([user('go')]), { answers, signal: watched() })
    for await (const event of run) if (requests([event])[0]?.toolCallId === 'c2') break
    await new Promise((resolve) => setImmediate(resolve))
    expect(await answers.put({ interruptId: 'x', status: 'resolved', payload: {} })).toMatchObject({
      status: 'refused',
    })
  }
  expect(counts.added).toBe(counts.removed)
  expect(activeTimers()).toBeLessThanOrEqual(before)
})

function activeTimers(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
}

test('S2.34 two runs at once take nothing from one another', async () => {
  const send = counted('send', gated)
  const turn = ({ messages }: { messages: readonly { role: string }[] }) =>
    messages.at(-1)?.role === 'user' ? call(['c1', 'send', {}]) : say('ok')
  const { agent } = testAgent(turn, { tools: [send.tool] })
  const one = live(agent, input([user('go')], { threadId: 'one' }))
  const other = live(agent, input([user('go')], { threadId: 'other' }))
  const [first] = await one.asked(1)
  const [second] = await other.asked(1)
  const stray = other.answers.put(yes(at([first as Asked], 0)))
  await other.answers.put(yes(at([second as Asked], 0)))
  await other.done
  expect(await stray).toMatchObject({ status: 'refused' })
  expect(send.runs).toHaveLength(1)
  expect(isOpen(one.events)).toBe(true)
  await one.answers.put(yes(at([first as Asked], 0)))
  await one.done
  expect(send.runs).toHaveLength(2)
})

async function answerOnce(
  respond: (asked: Asked, answers: AnswerQueue) => unknown,
  options: Partial<AgentOptions> = {},
  tool: Parameters<typeof counted>[1] = {},
) {
  const send = counted('send', { ...gated, ...tool })
  const { agent, model } = testAgent([call(['c1', 'send', { to: 'a', n: 1 }]), say('ok')], {
    ...options,
    tools: [send.tool],
  })
  const run = live(agent, input([user('go')]), { context: { subject: 'ann' } })
  await respond(at(await run.asked(1), 0), run.answers)
  await run.done
  return { send, model, events: run.events, agent }
}

test('a live answer passes the checks of any other: a wrong token is refused, and the question stays open', async () => {
  const { send, events } = await answerOnce((asked, { put }) =>
    put(answer(asked, { approved: true }, `${asked.approval.token.slice(0, -6)}AAAAAA`)),
  )
  expect(send.runs).toEqual([])
  expect(refusals(events)).toMatchObject([{ code: 'approval-tampered', toolCallId: 'c1' }])
  expect(last(events)).toMatchObject({ outcome: { type: 'interrupt' } })
})

test('a live answer that is malformed is refused, and the question stays open', async () => {
  const { send, events } = await answerOnce((asked, { put }) => put(answer(asked, { approved: 'yes' })))
  expect(send.runs).toEqual([])
  expect(refusals(events)).toMatchObject([{ code: 'approval-malformed' }])
  expect(last(events)).toMatchObject({ outcome: { type: 'interrupt' } })
})

test('an answer that was refused and is given again is not taken a second time: it goes out with the next request', async () => {
  const send = counted('send', {
    ...gated,
    allowEdits: ['n'],
    input: z.looseObject({ n: z.number().max(5) }),
  })
  const edit = (asked: Asked) => answer(asked, { approved: true, editedArgs: { n: 9 } })
  for (const [code, given] of [
    ['approval-not-yours', yes],
    ['approval-edit-invalid', edit],
  ] as const) {
    const turns = [call(['c1', 'send', { n: 1 }], ['c2', 'send', { n: 2 }]), say('ok')]
    const confirm = (_: unknown, { context }: { context: Readonly<Record<string, unknown>> }) =>
      context.factor === true
    const { agent } = testAgent(turns, { tools: [send.tool], approvals: { confirm } })
    const run = live(agent)
    const asked = await run.asked(2)
    const [first, second] = [at(asked, 0), at(asked, 1)]
    expect(await run.answers.put(given(first))).toEqual({ status: 'taken' })
    await expect.poll(() => refusals(run.events)).toMatchObject([{ code, approvalId: first.approval.id }])
    expect(await run.answers.put(given(first), { factor: true })).toMatchObject({
      status: 'refused',
      code: 'approval-conflict',
    })
    expect(await run.answers.put(no(first), { factor: true })).toMatchObject({ status: 'refused' })
    await run.answers.put(no(second), { factor: true })
    await run.done
    const history = fold([user('go')], run.events)
    const resume = [yes(first)]
    const events = await collect(agent, input(history, { resume }), { context: { factor: true } })
    expect(refusals(events)).toEqual([])
  }
  expect(send.runs).toEqual([{ n: 1 }, { n: 1 }])
})

test('live edits run where the tool allows them and close the request where it does not', async () => {
  const editedArgs = { to: 'b', n: 1 }
  const edit = (asked: Asked, { put }: AnswerQueue) => put(answer(asked, { approved: true, editedArgs }))
  const allowed = await answerOnce(edit, {}, { allowEdits: ['to'] })
  expect(allowed.send.runs).toEqual([editedArgs])
  const forbidden = await answerOnce(edit)
  expect(forbidden.send.runs).toEqual([])
  expect(refusals(forbidden.events)).toMatchObject([{ code: 'approval-malformed' }])
  expect(results(forbidden.events)).toMatchObject([{ id: 'c1', own: { code: 'approval-malformed' } }])
  expect(forbidden.model.requests).toHaveLength(2)
})

test('a live yes for the session is a grant: the next call of the tool is not asked', async () => {
  const send = counted('send', { ...gated, scopes: ['once', 'session'] })
  const { agent } = testAgent([call(['c1', 'send', {}]), call(['c2', 'send', {}]), say('ok')], {
    tools: [send.tool],
  })
  const run = live(agent, input([user('go')]), { context: { subject: 'ann' } })
  await run.answers.put(answer(at(await run.asked(1), 0), { approved: true, scope: 'session' }))
  await run.done
  expect(requests(run.events)).toHaveLength(1)
  expect(send.runs).toHaveLength(2)
})

test('a live answer and the same answer in a request make one execution: the second gets the stored outcome', async () => {
  const send = counted('send', gated)
  const { agent } = testAgent([call(['c1', 'send', {}]), say('ok'), say('again')], { tools: [send.tool] })
  const given = input([user('go')])
  const run = live(agent, given)
  const asked = at(await run.asked(1), 0)
  const pending = fold(given.messages, run.events)
  await run.answers.put(yes(asked))
  await run.done
  const repeat = await collect(agent, input(pending, { resume: [yes(asked)] }))
  expect(send.runs).toHaveLength(1)
  expect(results(repeat)).toMatchObject([{ id: 'c1', content: { done: 'send' } }])
})

test('a request that another request answered meanwhile gives the live run its stored outcome, and a contradiction is told', async () => {
  const send = counted('send', gated)
  const { agent } = testAgent([call(['c1', 'send', {}]), say('one'), say('two')], { tools: [send.tool] })
  const given = input([user('go')])
  const run = live(agent, given)
  const asked = at(await run.asked(1), 0)
  await collect(agent, input(fold(given.messages, run.events), { resume: [yes(asked)] }))
  await run.answers.put(no(asked))
  await run.done
  expect(send.runs).toHaveLength(1)
  expect(refusals(run.events)).toMatchObject([{ code: 'approval-conflict' }])
  expect(results(run.events)).toMatchObject([{ id: 'c1', content: { done: 'send' } }])
})

test('the time of a request ends the waiting for it: it is cancelled as expired, and a later yes runs nothing', async () => {
  const send = counted('send', { ...gated, expiresIn: 1 })
  let now = 1_000_000
  const { agent } = testAgent([call(['c1', 'send', {}]), say('too late')], {
    tools: [send.tool],
    now: () => now,
  })
  const run = live(agent)
  const asked = at(await run.asked(1), 0)
  now += 2000
  await run.done
  expect(results(run.events)).toMatchObject([
    {
      id: 'c1',
      content: { type: 'execution-cancelled' },
      own: { outcome: 'cancelled', code: 'approval-expired' },
    },
  ])
  expect(await run.answers.put(yes(asked))).toMatchObject({ status: 'refused' })
  expect(send.runs).toEqual([])
})

test('an approved client tool is handed out in the run, which then ends for the client to run it', async () => {
  const { tool } = await import('@countersign/core')
  const { agent } = testAgent([call(['c1', 'pick', { n: 1 }]), say('never')], {
    tools: [
      {
        ...tool({
          name: 'pick',
          description: 'Picks.',
          input: counted('pick').tool.input,
          ...gated,
          execute: () => 0,
        }),
        location: 'client' as const,
      },
    ],
  })
  const run = live(agent)
  await run.answers.put(yes(at(await run.asked(1), 0)))
  await run.done
  const ready = run.events.find((event) => event.type === 'CUSTOM' && event.name === 'client-tool-ready')
  expect(ready).toMatchObject({ value: { toolCallId: 'c1', toolName: 'pick', input: { n: 1 } } })
  expect(last(run.events)).toMatchObject({ outcome: { type: 'success', pendingToolCallIds: ['c1'] } })
})

test('a run that resumes with one of two answers waits for the other over the channel, and goes on in the same run', async () => {
  const send = counted('send', gated)
  const { agent, model } = testAgent(
    [call(['c1', 'send', { n: 1 }], ['c2', 'send', { n: 2 }]), say('both')],
    {
      tools: [send.tool],
    },
  )
  const given = input([user('go')])
  const first = await collect(agent, given)
  const [one, two] = requests(first)
  const history = fold(given.messages, first)
  const run = live(agent, input(history, { resume: [yes(at([one as Asked], 0))] }))
  await run.asked(1)
  expect(model.requests).toHaveLength(1)
  await run.answers.put(yes(at([two as Asked], 0)))
  await run.done
  expect(send.runs).toEqual([{ n: 1 }, { n: 2 }])
  expect(model.requests).toHaveLength(2)
  expect(last(run.events)).toMatchObject({ outcome: { type: 'success' } })
})

test('a model that fails while a person decides ends the run; the question stays good for a later request', async () => {
  const send = counted('send', gated)
  const broken = call(['c1', 'send', {}]).slice(0, 1)
  const { agent } = testAgent([broken, say('sent')], { tools: [send.tool] })
  const given = input([user('go')])
  const run = live(agent, given)
  await run.done
  expect(last(run.events)).toMatchObject({ type: 'RUN_ERROR', code: 'model-failed' })
  const [asked] = requests(run.events)
  await collect(agent, input(fold(given.messages, run.events), { resume: [yes(at([asked as Asked], 0))] }))
  expect(send.runs).toHaveLength(1)
})

test('a result without room ends a run that was resumed; the other question stays good for a later request', async () => {
  const send = counted('send', gated)
  const turn = call(['c1', 'send', { n: 1 }], ['c2', 'send', { n: 2 }])
  const { agent } = testAgent([turn, say('both')], { tools: [send.tool] })
  const given = input([user('go')])
  const first = await collect(agent, given)
  const history = fold(given.messages, first)
  const run = live(agent, input(history), { hold: noRoom })
  const [one, two] = await run.asked(2)
  await run.answers.put(yes(at([one as Asked], 0)))
  await run.done
  expect(last(run.events)).toMatchObject({ type: 'RUN_ERROR', code: 'too-many-runs', message: 'Full.' })
  const resume = [one, two].map((asked) => yes(asked as Asked))
  const after = await collect(agent, input(history, { resume }))
  expect(results(after).map(({ content }) => content)).toEqual([{ done: 'send' }, { done: 'send' }])
  expect(send.runs).toEqual([{ n: 1 }, { n: 2 }])
})

test('a result without room ends its run once the other calls have ended, and theirs are sent', async () => {
  let end = () => {}
  const slow = counted('slow', {
    ...gated,
    execute: () =>
      new Promise((resolve) => {
        end = () => resolve('slow')
      }),
  })
  const send = counted('send', gated)
  const turn = call(['c1', 'send', {}], ['c2', 'slow', {}])
  const { agent } = testAgent([turn, say('both')], { tools: [send.tool, slow.tool] })
  const given = input([user('go')])
  const first = await collect(agent, given)
  const resume = requests(first).map((asked) => yes(asked))
  const hold = ({ toolCallId }: { readonly toolCallId: string }) => {
    if (toolCallId === 'c1') setTimeout(end)
    if (toolCallId === 'c1') noRoom()
  }
  const ended = await collect(agent, input(fold(given.messages, first), { resume }), { hold })
  expect(results(ended).map(({ id }) => id)).toEqual(['c2'])
  expect(last(ended)).toMatchObject({ type: 'RUN_ERROR', code: 'too-many-runs' })
})

test('the audit trail names the door: live', async () => {
  const written: AuditEntry[] = []
  const ledger = memoryLedger()
  const audited = Object.assign(Object.create(ledger), {
    audit: async (entry: AuditEntry) => void written.push(entry),
  })
  await answerOnce((asked, { put }) => put(yes(asked)), { approvals: { ledger: audited } })
  expect(written.find(({ event }) => event === 'claimed')).toMatchObject({ via: 'live', toolCallId: 'c1' })
})

test('S3.116 without a live channel nothing waits on the server: the run that asked ends', async () => {
  const send = counted('send', gated)
  const { agent } = testAgent([call(['c1', 'send', {}]), say('never')], { tools: [send.tool] })
  const events = await collect(agent, input([user('go')]))
  expect(types(events).slice(-2)).toEqual(['CUSTOM approval-requested', 'RUN_FINISHED'])
})
