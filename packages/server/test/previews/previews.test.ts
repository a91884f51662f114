import type { Preview } from '@countersign/core'
import { memoryLedger, statelessLedger, ToolError } from '@countersign/server'
import { passMacrotasks } from '@countersign/testing'
import { expect, test } from 'vitest'
import {
  answer,
  ask,
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
} from '../support.js'
import { diff, fileTool, naming, writer, yes } from './world.js'

test('V2 V13 the preview is computed when asking, and sent with the event and the interrupt', async () => {
  const made = fileTool()
  const { events, first } = await ask(writer(made).agent)
  expect(first.approval.preview).toEqual(diff('one'))
  expect(last(events)).toMatchObject({
    outcome: { interrupts: [{ metadata: { countersign: { approval: { preview: diff('one') } } } }] },
  })
  expect(made.world.computed).toBe(1)
})

test('V2 a preview that was altered on the way makes the answer fail, and nothing runs', async () => {
  const made = fileTool()
  const { agent } = writer(made)
  const { history, first } = await ask(agent)
  for (const preview of [diff('two'), { kind: 'text', text: 'harmless' }, undefined, null]) {
    const events = await collect(agent, input(history, { resume: [yes(first, {}, { preview })] }))
    expect(refusals(events)).toMatchObject([{ approvalId: first.approval.id, code: 'approval-tampered' }])
    expect(last(events)).toMatchObject({ outcome: { type: 'interrupt' } })
  }
  expect(made.runs).toEqual([])
  await collect(agent, input(history, { resume: [yes(first)] }))
  expect(made.runs).toEqual([{ text: 'new' }])
})

test('V2 a preview that was added on the way makes the answer fail', async () => {
  const made = fileTool({ preview: undefined })
  const { agent } = writer(made)
  const { history, first } = await ask(agent)
  expect('preview' in first.approval).toBe(false)
  const resume = [yes(first, {}, { preview: diff('one') })]
  expect(refusals(await collect(agent, input(history, { resume })))).toMatchObject([
    { code: 'approval-tampered' },
  ])
  expect(made.runs).toEqual([])
})

test('V2 a request whose preview was altered can still be denied', async () => {
  const made = fileTool()
  const { agent } = writer(made)
  const { history, first } = await ask(agent)
  const events = await collect(
    agent,
    input(history, { resume: [yes(first, { approved: false }, { preview: 1 })] }),
  )
  expect(results(events)).toMatchObject([{ content: { type: 'execution-denied' } }])
})

test('V3 unchanged at execution: it runs, and execute gets the approved preview', async () => {
  const made = fileTool()
  const { agent } = writer(made)
  const { history, first } = await ask(agent)
  const events = await collect(agent, input(history, { resume: [yes(first)] }))
  expect(results(events)).toMatchObject([{ content: { done: true } }])
  expect(made.approved).toEqual([diff('one')])
  expect(made.world.computed).toBe(2)
})

test('V4 changed: nothing runs, and a new request has the new preview and the previous one; the model is not called', async () => {
  const made = fileTool()
  const { agent, model } = writer(made)
  const { history, first } = await ask(agent)
  made.world.text = 'two'
  const events = await collect(agent, input(history, { resume: [yes(first)] }))
  expect(types(events)).toEqual(['RUN_STARTED', 'CUSTOM approval-requested', 'RUN_FINISHED'])
  const [second] = requests(events)
  expect(second).toMatchObject({
    toolCallId: 'call_1',
    input: { text: 'new' },
    approval: { preview: diff('two'), previous: diff('one') },
  })
  expect(second?.approval.id).not.toBe(first.approval.id)
  expect(second?.approval.token).not.toBe(first.approval.token)
  expect(model.requests).toHaveLength(1)
  expect(made.runs).toEqual([])
  if (second === undefined) return
  const done = await collect(agent, input(history, { resume: [yes(second)] }))
  expect(results(done)).toMatchObject([{ content: { done: true } }])
  expect(made.approved).toEqual([diff('two')])
  expect(model.requests).toHaveLength(2)
})

test('V4 the answer to the request that was replaced gets no outcome of its own: the call belongs to the new request', async () => {
  const made = fileTool()
  const { agent } = writer(made)
  const { history, first } = await ask(agent)
  made.world.text = 'two'
  const [second] = requests(await collect(agent, input(history, { resume: [yes(first)] })))
  if (second === undefined) throw new Error('not asked again')
  // The reply was lost: the same answer again, with a page that knows only the first request.
  const repeated = await collect(agent, input(history, { resume: [yes(first)] }))
  expect(types(repeated)).toEqual(['RUN_STARTED', 'CUSTOM approval-requested', 'RUN_FINISHED'])
  expect(requests(repeated)).toEqual([second])
  // Neither does the contrary answer, but whoever gave it is told that the call can still be approved.
  const denied = await collect(agent, input(history, { resume: [yes(first, { approved: false })] }))
  expect(refusals(denied)).toMatchObject([
    { code: 'approval-conflict', message: expect.stringContaining('a new request has replaced it') },
  ])
  expect(requests(denied)).toEqual([second])
  expect(results(denied)).toEqual([])
  expect(made.runs).toEqual([])
  const done = await collect(agent, input(history, { resume: [yes(second)] }))
  expect(results(done)).toMatchObject([{ content: { done: true } }])
  // And once the call has run, a page that still knows only the first request gets the result.
  const late = await collect(agent, input(history, { resume: [yes(first)] }))
  expect(results(late)).toMatchObject([{ content: { done: true } }])
  expect(made.runs).toHaveLength(1)
})

test('V4 a page that names only the first request, and no token, can answer the new one', async () => {
  const made = fileTool()
  const { agent } = writer(made)
  const { history, first } = await ask(agent)
  made.world.text = 'two'
  const [second] = requests(
    await collect(agent, input(history, { resume: [answer(first, { approved: true })] })),
  )
  if (second === undefined) throw new Error('not asked again')
  const { metadata: _, ...bare } = answer(second, { approved: true })
  const done = await collect(agent, input(history, { resume: [bare] }))
  expect(results(done)).toMatchObject([{ content: { done: true } }])
  expect(made.runs).toHaveLength(1)
})

test('V4 with users, V4 without: the result that follows survives a later request of a page that named the first', async () => {
  for (const context of [undefined, { subject: 'ann' }]) {
    const made = fileTool()
    const { agent } = writer(made)
    const options = context && { context }
    const { history, first } = await ask(agent, {}, options)
    made.world.text = 'two'
    const [second] = requests(await collect(agent, input(history, { resume: [yes(first)] }), options))
    if (second === undefined) throw new Error('not asked again')
    const done = await collect(agent, input(history, { resume: [yes(second)] }), options)
    const result = done.find((event) => event.type === 'TOOL_CALL_RESULT')
    if (result?.type !== 'TOOL_CALL_RESULT') throw new Error('no result')
    const { messageId: id, toolCallId, content, metadata } = result
    const kept = [
      ...history,
      { id, role: 'tool' as const, toolCallId, content: String(content), ...(metadata && { metadata }) },
    ]
    const next = await collect(agent, input([...kept, user('and now?')]), options)
    expect(results(next)).toEqual([])
  }
})

test('V4 nobody is asked again once the user has moved on', async () => {
  const made = fileTool()
  const { agent, model } = writer(made)
  const { history, first } = await ask(agent)
  made.world.text = 'two'
  const events = await collect(agent, input([...history, user('never mind')], { resume: [yes(first)] }))
  expect(requests(events)).toEqual([])
  expect(results(events)).toMatchObject([{ own: { outcome: 'cancelled', code: 'approval-stale' } }])
  expect(model.requests).toHaveLength(2)
})

test('V4 no grant comes from an approval for the session that was replaced', async () => {
  const made = fileTool({ scopes: ['once', 'session'] })
  const { agent } = writer(made)
  const context = { subject: 'ann' }
  const { history, first } = await ask(agent, {}, { context })
  made.world.text = 'two'
  await collect(agent, input(history, { resume: [yes(first, { scope: 'session' })] }), { context })
  expect(await agent.grants.list('ann')).toEqual([])
})

test('V5 a change while the call waits for its turn is seen', async () => {
  const made = fileTool()
  const order: string[] = []
  const slow = counted('slow', {
    needsApproval: true,
    execute: async () => {
      order.push('slow')
      made.world.text = 'changed by the call before'
      return {}
    },
  })
  const { agent } = testAgent(
    [call(['call_0', 'slow', {}], ['call_1', 'write', { text: 'new' }]), say('done')],
    {
      tools: [slow.tool, made.tool],
      concurrency: 1,
    },
  )
  const { history, asked } = await ask(agent)
  const events = await collect(agent, input(history, { resume: asked.map((one) => yes(one)) }))
  expect(order).toEqual(['slow'])
  expect(made.runs).toEqual([])
  expect(requests(events)).toMatchObject([{ approval: { preview: diff('changed by the call before') } }])
})

test('V5 of two approved changes of one file, the second is asked about again: it starts once the first has ended', async () => {
  const made = fileTool({
    execute: async ({ text }) => {
      await new Promise((resolve) => setTimeout(resolve, 1))
      made.world.text = String(text)
      return {}
    },
  })
  const both = call(['call_1', 'write', { text: 'new' }], ['call_2', 'write', { text: 'other' }])
  const { agent } = testAgent([both, say('done')], { tools: [made.tool] })
  const { history, asked } = await ask(agent)
  const events = await collect(agent, input(history, { resume: asked.map((one) => yes(one)) }))
  expect(results(events)).toMatchObject([{ id: 'call_1' }])
  expect(requests(events)).toMatchObject([
    { toolCallId: 'call_2', approval: { preview: diff('new', 'other'), previous: diff('one', 'other') } },
  ])
  expect(made.runs).toEqual([{ text: 'new' }])
})

test('V5 a call that waits while another never ends keeps its answer unused: once the run is stopped, it can be sent again', async () => {
  const stop = new AbortController()
  const made = fileTool({
    execute: async ({ text }) => {
      if (text !== 'hangs') return {}
      stop.abort()
      return new Promise(() => {})
    },
  })
  const both = call(['call_1', 'write', { text: 'hangs' }], ['call_2', 'write', { text: 'new' }])
  const { agent } = testAgent([both, say('done')], { tools: [made.tool], approvals: { wait: 20 } })
  const { history, asked } = await ask(agent)
  const given = input(history, { resume: asked.map((one) => yes(one)) })
  const events = await collect(agent, given, { signal: stop.signal })
  expect(results(events)).toMatchObject([{ id: 'call_1', own: { code: 'interrupted' } }])
  expect(refusals(events)).toMatchObject([{ toolCallId: 'call_2', code: 'ledger-unavailable' }])
  const again = await collect(
    agent,
    input(fold(history, events), { resume: asked.slice(1).map((one) => yes(one)) }),
  )
  expect(results(again)).toMatchObject([{ id: 'call_2', content: {} }])
  expect(made.runs).toHaveLength(2)
})

test('V5 a change during the claim is seen', async () => {
  const made = fileTool()
  const ledger = memoryLedger()
  const claim: typeof ledger.claim = async (...given) => {
    const claimed = await ledger.claim(...given)
    made.world.text = 'two'
    return claimed
  }
  const { agent } = writer(made, { approvals: { ledger: { ...ledger, id: ledger.id, claim } } })
  const { history, first } = await ask(agent)
  const events = await collect(agent, input(history, { resume: [yes(first)] }))
  expect(requests(events)).toHaveLength(1)
  expect(made.runs).toEqual([])
})

test('V6 drift ten times in a row is bounded, and ends with a clear reason, with every kind of ledger', async () => {
  for (const ledger of [memoryLedger(), statelessLedger({ acceptReplay: true })]) {
    const made = fileTool()
    const { agent, model } = writer(made, { approvals: { ledger } })
    const asked = await ask(agent)
    let { first } = asked
    let outcome: unknown
    let times = 0
    for (; times < 10 && outcome === undefined; times++) {
      made.world.text = `drift ${times}`
      const events = await collect(agent, input(naming(asked.history, first), { resume: [yes(first)] }))
      first = requests(events)[0] ?? first
      outcome = results(events)[0]
    }
    expect(times).toBe(6)
    expect(outcome).toMatchObject({
      content: { reason: expect.stringContaining('6 times in a row') },
      own: { outcome: 'cancelled', code: 'approval-stale' },
    })
    expect(made.runs).toEqual([])
    expect(model.requests).toHaveLength(2)
  }
})

const unreadable = () => {
  throw new Error('db://secret')
}

function cyclic(value: Record<string, unknown>, others: readonly object[] = []) {
  return Object.assign(value, { value, others: [...others, value] })
}

const failing: readonly [name: string, preview: () => unknown, reason: RegExp][] = [
  ['throws', () => Promise.reject(new Error('db://secret')), /^The preview of write failed\. .*call_1/],
  ['says why', () => Promise.reject(new ToolError('The file is gone.')), /^The file is gone\.$/],
  ['hangs', () => new Promise(() => {}), /within 20 ms/],
  ['is too large', () => ({ kind: 'text', text: 'x'.repeat(256 * 1024) }), /256 KiB/],
  [
    'is so large that it is not even read',
    () => ({ kind: 'list', items: Object.defineProperty(Array(300_000).fill(''), 5, { get: unreadable }) }),
    /256 KiB/,
  ],
  [
    'says why in a message that cannot be read',
    () => Promise.reject(Object.defineProperty(new ToolError(''), 'message', { get: unreadable })),
    /^The preview of write failed\./,
  ],
  [
    'says why in a message that is no text',
    () => Promise.reject(Object.defineProperty(new ToolError(''), 'message', { value: { a: 1n } })),
    /^The preview of write failed\./,
  ],
  ['is not JSON', () => ({ kind: 'json', value: new Date() }), /not JSON/],
  ['is a function', () => () => 1, /not JSON/],
  ['is nothing', () => undefined, /gave none/],
  ['contains itself', () => cyclic({ kind: 'json' }), /nests deeper/],
  ['contains itself again and again', () => cyclic({}, Array(50).fill({})), /nests deeper/],
]

test.each(failing)(
  'V7 a preview that %s: the request says so, and the reason is bound',
  async (_, preview, reason) => {
    let works: Preview | undefined
    const made = fileTool({ preview: (() => works ?? preview()) as () => Preview })
    const approvals = { previewTimeout: 20 }
    const { agent } = writer(made, { approvals })
    const { history, first } = await ask(agent)
    expect(first.approval.preview).toEqual({ kind: 'none', reason: expect.stringMatching(reason) })
    expect(JSON.stringify(first)).not.toContain('db://secret')
    // A preview that works later is a change.
    works = diff('one')
    const [second] = requests(await collect(agent, input(history, { resume: [yes(first)] })))
    expect(second?.approval).toMatchObject({ preview: works, previous: { kind: 'none' } })
    expect(made.runs).toEqual([])
  },
)

test('V7 the log names the call whose preview failed, as the request says', async () => {
  const logged: string[] = []
  const made = fileTool({ preview: () => Promise.reject(new Error('db://secret')) })
  const { first } = await ask(
    writer(made, { warn: (message, error) => logged.push(`${message} ${error}`) }).agent,
  )
  expect(first.approval.preview).toEqual({
    kind: 'none',
    reason: 'The preview of write failed. The log of the server has the cause, under call_1.',
  })
  expect(logged).toEqual(['The preview of write failed in the call call_1. Error: db://secret'])
})

test('V7 a preview that fails in the same way each time does not hold up the call', async () => {
  const made = fileTool({ preview: () => Promise.reject(new ToolError('The file is binary.')) })
  const { agent } = writer(made)
  const { history, first } = await ask(agent)
  await collect(agent, input(history, { resume: [yes(first)] }))
  expect(made.approved).toEqual([{ kind: 'none', reason: 'The file is binary.' }])
})

test('V1 V7 what is no known kind is sent as JSON', async () => {
  const made = fileTool({ preview: () => ({ kind: 'chart', points: [1] }) as never })
  const { first } = await ask(writer(made).agent)
  expect(first.approval.preview).toEqual({ kind: 'json', value: { kind: 'chart', points: [1] } })
})

test('V10 another process, and a restart in between, with a ledger that both share', async () => {
  const ledger = memoryLedger()
  const made = fileTool()
  const { history, first } = await ask(writer(made, { approvals: { ledger } }).agent)
  const other = testAgent([say('done'), say('done')], { tools: [made.tool], approvals: { ledger } })
  made.world.text = 'two'
  const [second] = requests(await collect(other.agent, input(history, { resume: [yes(first)] })))
  expect(second?.approval).toMatchObject({ preview: diff('two'), previous: diff('one') })
  const third = testAgent([say('done')], { tools: [made.tool], approvals: { ledger } })
  // The request that is sent again shows the same.
  expect(requests(await collect(third.agent, input(history)))).toEqual([second])
  if (second === undefined) return
  await collect(third.agent, input(history, { resume: [yes(second)] }))
  expect(made.approved).toEqual([diff('two')])
})

test('V10 with a ledger without records, the preview comes back from the history, if it is the one that was sent', async () => {
  const ledger = statelessLedger({ acceptReplay: true })
  const made = fileTool()
  const { history, first } = await ask(writer(made, { approvals: { ledger } }).agent)
  const given = (preview: unknown) => naming(history, first, preview)
  const { agent } = testAgent([], { tools: [made.tool], approvals: { ledger } })
  expect(requests(await collect(agent, input(given(diff('one')))))[0]?.approval.preview).toEqual(diff('one'))
  expect(requests(await collect(agent, input(given(diff('two')))))[0]?.approval.preview).toBeUndefined()
})

test('V11 a grant lets a call through without a preview, unless the tool wants one', async () => {
  for (const previewUnasked of [false, true]) {
    const made = fileTool({ scopes: ['once', 'session'], previewUnasked })
    const write = call(['', 'write', { text: 'new' }])
    const { agent } = testAgent([write, write, say('done')], { tools: [made.tool] })
    const context = { subject: 'ann' }
    const { history, first } = await ask(agent, {}, { context })
    await collect(agent, input(history, { resume: [yes(first, { scope: 'session' })] }), { context })
    expect(made.runs).toHaveLength(2)
    expect(made.approved).toEqual([diff('one'), previewUnasked ? diff('one') : undefined])
    expect(made.world.computed).toBe(previewUnasked ? 3 : 2)
  }
})

test('V13 a peer that knows nothing of previews is still checked for drift', async () => {
  const made = fileTool()
  const { agent } = writer(made)
  const { history, first } = await ask(agent)
  made.world.text = 'two'
  const [second] = requests(
    await collect(agent, input(history, { resume: [answer(first, { approved: true })] })),
  )
  expect(made.runs).toEqual([])
  if (second === undefined) throw new Error('not asked again')
  await collect(agent, input(history, { resume: [answer(second, { approved: true })] }))
  expect(made.approved).toEqual([diff('two')])
})

test('V13 the approval tool carries the preview', async () => {
  const made = fileTool()
  const { events } = await ask(writer(made, { approvals: { askAsTool: true } }).agent)
  const asked = events.findLast((event) => event.type === 'TOOL_CALL_ARGS')
  expect(JSON.parse(asked?.type === 'TOOL_CALL_ARGS' ? asked.delta : '')).toMatchObject({
    preview: diff('one'),
  })
})

/** Values that throw while they are read, each in a way of its own. */
const throwing: readonly (readonly [string, () => unknown])[] = [
  [
    'a getter that throws',
    () => ({
      kind: 'text',
      get text() {
        throw new Error('text')
      },
    }),
  ],
  [
    'toJSON that throws',
    () => ({
      kind: 'json',
      value: {
        toJSON() {
          throw new Error('toJSON')
        },
      },
    }),
  ],
  [
    'a proxy that throws',
    () =>
      new Proxy(
        {},
        {
          ownKeys() {
            throw new Error('ownKeys')
          },
          getPrototypeOf() {
            throw new Error('getPrototypeOf')
          },
        },
      ),
  ],
  [
    'a revoked proxy',
    () => {
      const { proxy, revoke } = Proxy.revocable({}, {})
      revoke()
      return proxy
    },
  ],
  [
    'a list of a revoked proxy',
    () => {
      const { proxy, revoke } = Proxy.revocable([], {})
      revoke()
      return { kind: 'json', value: proxy }
    },
  ],
]

test.each(throwing)('a preview of %s is none, as is one that throws', async (_, make) => {
  const { agent } = writer(fileTool({ preview: make as never }))
  const { first } = await ask(agent)
  expect(first.approval.preview).toMatchObject({ kind: 'none', reason: expect.any(String) })
})

test.each(throwing)(
  'a preview that becomes %s before the start leaves no claim open: approval is requested again',
  async (_, make) => {
    const ledger = memoryLedger()
    let isBroken = false
    const preview = () => (isBroken ? make() : diff('one'))
    const made = fileTool({ preview: preview as never })
    const { agent } = writer(made, { approvals: { ledger } })
    const { history, first } = await ask(agent)
    isBroken = true
    const events = await collect(agent, input(history, { resume: [yes(first)] }))
    expect(last(events)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'interrupt' } })
    expect(requests(events)).toMatchObject([{ approval: { preview: { kind: 'none' } } }])
    const entry = await ledger.lookup({ owner: null, threadId: 'thread', approvalId: first.approval.id })
    expect(entry?.state.phase).toBe('done')
    expect(made.runs).toEqual([])
  },
)

test('a mask that throws right before the start leaves no claim open, and nothing runs', async () => {
  const ledger = memoryLedger()
  let isBroken = false
  const redact = () => {
    if (isBroken) throw new Error('redact')
    return {}
  }
  const made = fileTool({ redact })
  const { agent } = writer(made, { approvals: { ledger } })
  const { history, first } = await ask(agent)
  isBroken = true
  const events = await collect(agent, input(history, { resume: [yes(first)] }))
  expect(last(events)).toMatchObject({ type: 'RUN_FINISHED' })
  const entry = await ledger.lookup({ owner: null, threadId: 'thread', approvalId: first.approval.id })
  expect(entry?.state).toMatchObject({
    phase: 'done',
    outcome: { type: 'cancelled', code: 'approval-stale' },
  })
  expect(made.runs).toEqual([])
})

test('V7 a reason is cut between characters, and can be approved whatever it contains', async () => {
  for (const text of [`${'x'.repeat(1023)}\u{1f600}`, `half \ud83d`]) {
    const made = fileTool({
      preview: () => {
        throw new ToolError(text)
      },
    })
    const { agent } = writer(made)
    const { history, first } = await ask(agent)
    const events = await collect(agent, input(history, { resume: [yes(first)] }))
    expect(refusals(events)).toEqual([])
    expect(made.runs).toHaveLength(1)
  }
})

test('V8 what was bound is read after the preview, which may take seconds', async () => {
  let [fact, isSlow] = ['one', false]
  const made = fileTool({
    bind: () => fact,
    preview: async () => {
      await Promise.resolve()
      if (isSlow) fact = 'two'
      return { kind: 'text', text: 'same' }
    },
  })
  const { agent } = writer(made)
  const { history, first } = await ask(agent)
  isSlow = true
  await collect(agent, input(history, { resume: [yes(first)] }))
  expect(made.runs).toEqual([])
})

test('V14 a preview that is malformed, or has members that nothing would show, is sent as JSON, with one warning', async () => {
  const preview = { kind: 'diff', before: 'a', after: 'b', hunks: null } as never
  const warnings: string[] = []
  const made = counted('draw', {
    needsApproval: true,
    preview: () => preview,
    redact: (given) => ({ ...given, text: '' }),
  })
  const turns = [call(['call_1', 'draw', { text: 'new' }], ['call_2', 'draw', {}])]
  const { agent } = testAgent(turns, { tools: [made.tool], warn: (message) => warnings.push(message) })
  const { first } = await ask(agent)
  expect(first.approval.preview).toEqual({ kind: 'json', value: preview })
  expect(warnings).toEqual([expect.stringContaining('no known kind')])
})

test('V5 two pages approve two requests of one conversation at once: what one changes, the other is asked about', async () => {
  let go = () => {}
  const gone = new Promise<void>((resolve) => {
    go = resolve
  })
  const made = fileTool({
    execute: async ({ text }) => {
      await gone
      made.world.text = String(text)
      return {}
    },
  })
  const { agent } = testAgent(
    [call(['a', 'write', { text: 'A' }], ['b', 'write', { text: 'B' }]), [], [], []],
    {
      tools: [made.tool],
    },
  )
  const { history, asked } = await ask(agent)
  const [a, b] = asked
  if (a === undefined || b === undefined) return expect.unreachable()
  const send = (one: typeof a) => collect(agent, input(history, { resume: [yes(one)] }))
  const approved = send(a)
  await expect.poll(() => made.runs).toEqual([{ text: 'A' }])
  const alsoApproved = send(b)
  await passMacrotasks(20)
  go()
  const [first, second] = await Promise.all([approved, alsoApproved])
  expect(results(first)).toMatchObject([{ id: 'a' }])
  expect(requests(second).find(({ toolCallId }) => toolCallId === 'b')?.approval).toMatchObject({
    preview: diff('A', 'B'),
    previous: diff('one', 'B'),
  })
  expect(made.runs).toEqual([{ text: 'A' }])
  // A run that is stopped waits for no other.
  const hangs = fileTool({ execute: () => new Promise(() => {}), timeout: 60_000 })
  const other = testAgent([call(['a', 'write', { text: 'A' }], ['b', 'write', { text: 'B' }]), [], []], {
    tools: [hangs.tool],
    approvals: { wait: 1 },
  })
  const open = await ask(other.agent)
  const [one, two] = [new AbortController(), new AbortController()]
  const [approveA, approveB] = open.asked.map(
    (asking) =>
      ({ signal }: AbortController) =>
        collect(other.agent, input(open.history, { resume: [yes(asking)] }), { signal }),
  )
  void approveA?.(one)
  await expect.poll(() => hangs.runs).toEqual([{ text: 'A' }])
  const waiting = approveB?.(two)
  two.abort()
  await waiting
  one.abort()
  expect(hangs.runs).toEqual([{ text: 'A' }])
})
