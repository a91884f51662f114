import {
  CountersignError,
  createChatState,
  type ErrorCode,
  isCountersignError,
  readMessages,
  resumeEntries,
  step,
  toAGUIMessages,
  type UIMessage,
} from '@countersign/core'
import { fullSteps } from '@countersign/core/ag-ui'
import {
  type Agent,
  type AgentOptions,
  memoryLedger,
  ToolkitRequiredError,
  ToolNotFoundError,
} from '@countersign/server'
import { executeApprovedToolCalls } from '@countersign/server/plan'
import { expect, expectTypeOf, test } from 'vitest'
import { weather } from './answered.js'
import { answer, ask, call, collect, counted, input, last, results, say, testAgent } from './support.js'

const pendingIn = (messages: readonly UIMessage[]) =>
  messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'tool-call' && part.state === 'approval-requested' ? [part] : [])),
  )

/** Asked by an agent with the tools, answered to an agent with others; both know of one another's questions. */
async function moved(approved: boolean, tools: NonNullable<AgentOptions['tools']>) {
  const ledger = memoryLedger()
  const tool = weather()
  const asking = testAgent([call(['call_1', 'GetWeather', { city: 'x' }])], {
    tools: [tool.tool],
    approvals: { ledger },
  })
  const { history, first } = await ask(asking.agent)
  const errors: unknown[] = []
  const later = testAgent([say('ok')], {
    tools,
    approvals: { ledger },
    onError: (error) => errors.push(error),
  })
  const given = () => input(history, { resume: [answer(first, { approved })] })
  return { tool, ledger, errors, given, ...later }
}

test('S1.16 S1.18 an empty list of tools is no tools, and a denial needs them as well', async () => {
  for (const approved of [true, false]) {
    const { agent, model, errors, given } = await moved(approved, [])
    expect(last(await collect(agent, given()))).toMatchObject({ type: 'RUN_ERROR', code: 'toolkit-required' })
    expect(errors).toMatchObject([{ pendingApprovals: ['GetWeather'] }])
    expect(model.requests.length).toBe(0)
  }
})

test('S1.17 the error names the tools, is not retryable, keeps its name and survives JSON', () => {
  const error = new ToolkitRequiredError(['GetWeather', 'GetTime'], {
    description: 'in a test',
    method: 'stream',
  })
  expect(error.pendingApprovals).toEqual(['GetWeather', 'GetTime'])
  expect(error.isRetryable).toBe(false)
  expect(error.message).toContain('GetWeather, GetTime')
  expect(error.name).toBe('CountersignError')
  const back = ToolkitRequiredError.fromJSON(JSON.parse(JSON.stringify(error)))
  expect(back).toEqual(error)
  expect([back.message, back.description, back.method]).toEqual([error.message, 'in a test', 'stream'])
  expect(new ToolkitRequiredError([]).message).toContain('some tools')
  expect(new ToolkitRequiredError([]).description).toBeUndefined()
})

test('S1.21 a denied call whose tool is gone is denied, without an error', async () => {
  const other = counted('GetTime')
  const { agent, model, errors, given } = await moved(false, [other.tool])
  expect(results(await collect(agent, given()))).toMatchObject([
    { id: 'call_1', content: { type: 'execution-denied' } },
  ])
  expect([errors, model.requests.length]).toEqual([[], 1])
})

test('S1.22 an error says what was called: generate or stream', async () => {
  const { agent, errors, given } = await moved(true, [])
  await collect(agent, given())
  await expect(agent.generate(given())).rejects.toMatchObject({
    code: 'run-error',
    data: { code: 'toolkit-required', method: 'generate' },
    cause: { method: 'generate' },
  })
  expect(errors).toMatchObject([{ method: 'stream' }, { method: 'generate' }])
  const gone = await moved(true, [counted('GetTime').tool])
  await collect(gone.agent, gone.given())
  expect(gone.errors).toMatchObject([{ code: 'tool-not-found', method: 'stream' }])
})

test('S1.23 the run ends with RUN_ERROR and a stable code; the client keeps the answer, and a retry works', async () => {
  const ledger = memoryLedger()
  const tool = weather()
  const asking = testAgent([call(['call_1', 'GetWeather', {}])], {
    tools: [tool.tool],
    approvals: { ledger },
  })
  const bare = testAgent([say('no')], { approvals: { ledger } })
  const repaired = testAgent([say('ok')], { tools: [tool.tool], approvals: { ledger } })
  const state = createChatState({ moreSteps: fullSteps })
  const send = async (agent: Agent) => {
    const given = input(toAGUIMessages(readMessages(state)), { resume: resumeEntries(state, true) })
    step(state, { type: 'run-opened', runId: given.runId })
    const events = await collect(agent, given)
    for (const event of events) step(state, event)
    const end = last(events)
    const error = end.type === 'RUN_ERROR' ? new CountersignError('run-error', end.message) : undefined
    step(state, { type: 'run-closed', end: error ? { type: 'failed', error } : { type: 'success' } })
    return end
  }
  step(state, {
    type: 'user-message',
    message: { id: 'u', role: 'user', parts: [{ type: 'text', text: 'go' }] },
  })
  await send(asking.agent)
  const approvalId = pendingIn(readMessages(state))[0]?.approval?.id ?? ''
  step(state, { type: 'answer', approvalId, approved: true })
  expect(await send(bare.agent)).toEqual({
    type: 'RUN_ERROR',
    code: 'toolkit-required',
    message: expect.stringContaining('GetWeather'),
  })
  expect(state.error).toMatchObject({ code: 'run-error' })
  const part = () => readMessages(state)[1]?.parts[0]
  expect(part()).toMatchObject({ state: 'approval-responded', approval: { approved: true } })
  expect(await send(repaired.agent)).toMatchObject({ type: 'RUN_FINISHED' })
  expect(part()).toMatchObject({ state: 'complete', output: { temp: 72 } })
  expect(tool.runs.length).toBe(1)
})

test('S1.24 both errors are told apart by their code, which is one of the published ones', () => {
  const errors = [new ToolkitRequiredError(['a']), new ToolNotFoundError('a', {}, ['b'])]
  const codes = errors.map((error: unknown) => (isCountersignError(error) ? error.code : undefined))
  expect(codes).toEqual(['toolkit-required', 'tool-not-found'])
  expectTypeOf<'toolkit-required' | 'tool-not-found'>().toExtend<ErrorCode>()
})

test('S1.35 S1.36 executeApprovedToolCalls throws the error itself, before anything runs', async () => {
  const bare = await moved(true, [])
  await expect(executeApprovedToolCalls(bare.agent, bare.given())).rejects.toBeInstanceOf(
    ToolkitRequiredError,
  )
  const other = await moved(true, [counted('GetTime').tool])
  const error: unknown = await executeApprovedToolCalls(other.agent, other.given()).catch((thrown) => thrown)
  expect(error).toBeInstanceOf(ToolNotFoundError)
  expect(error).toMatchObject({
    toolName: 'GetWeather',
    toolParams: { city: 'x' },
    availableTools: ['GetTime'],
  })
  expect([bare.tool.runs, other.tool.runs]).toEqual([[], []])
})

test('S1.38 executeApprovedToolCalls answers the results, approved first, and asks no model', async () => {
  const send = counted('send', { needsApproval: true })
  const calls = call(['c1', 'send', { n: 1 }], ['c2', 'send', { n: 2 }], ['c3', 'send', { n: 3 }])
  const { agent, model } = testAgent([calls, say('ok')], { tools: [send.tool] })
  const { history, asked } = await ask(agent)
  const resume = asked.map((one, index) => answer(one, { approved: index > 0 }))
  const done = await executeApprovedToolCalls(agent, input(history, { resume }))
  expect(done).toMatchObject([
    { type: 'tool-result', toolCallId: 'c2', name: 'send', isFailure: false, result: { done: 'send' } },
    { toolCallId: 'c3', isFailure: false },
    { toolCallId: 'c1', isFailure: true, result: { type: 'execution-denied' } },
  ])
  expect([send.runs.length, model.requests.length]).toEqual([2, 1])
})

test('maxSteps of a run is a number of steps', async () => {
  const { agent, model } = testAgent([call(['c1', 'look', {}]), say('ok')], { tools: [counted('look').tool] })
  expect(() => agent.run(input([]), { maxSteps: -1 })).toThrow('maxSteps')
  const events = await collect(agent, input([]), { maxSteps: 1 })
  expect(last(events)).toMatchObject({ metadata: { finishReason: 'max_steps' } })
  expect(model.requests.length).toBe(1)
})
