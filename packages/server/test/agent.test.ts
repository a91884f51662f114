import { CountersignError } from '@countersign/core'
import {
  createAgent,
  memoryLedger,
  scriptedModel,
  ToolkitRequiredError,
  ToolNotFoundError,
} from '@countersign/server'
import { expect, test } from 'vitest'
import { weather } from './answered.js'
import {
  answer,
  ask,
  call,
  collect,
  counted,
  input,
  last,
  results,
  SECRET,
  say,
  testAgent,
} from './support.js'

test('S1.15 S1.35 answers without any tool end the run with toolkit-required, before the model', async () => {
  const ledger = memoryLedger()
  const asking = testAgent([call(['call_1', 'GetWeather', {}])], {
    tools: [weather().tool],
    approvals: { ledger },
  })
  const { history, first } = await ask(asking.agent)
  const errors: unknown[] = []
  const bare = testAgent([say('no')], { approvals: { ledger }, onError: (error) => errors.push(error) })
  const events = await collect(bare.agent, input(history, { resume: [answer(first, { approved: true })] }))
  expect(last(events)).toMatchObject({ type: 'RUN_ERROR', code: 'toolkit-required' })
  const [error] = errors
  expect(error instanceof ToolkitRequiredError && error.pendingApprovals).toEqual(['GetWeather'])
  expect(bare.model.requests.length).toBe(0)
})

test('S1.19 S1.20 S1.36 an approved tool that is gone stops everything before anything runs', async () => {
  const ledger = memoryLedger()
  const known = counted('GetTime', { needsApproval: true })
  const asking = testAgent([call(['call_1', 'GetTime', {}], ['call_2', 'GetWeather', { city: 'x' }])], {
    tools: [weather().tool, known.tool],
    approvals: { ledger },
  })
  const { history, asked } = await ask(asking.agent)
  const errors: unknown[] = []
  const later = testAgent([say('ok')], {
    tools: [known.tool],
    approvals: { ledger },
    onError: (error) => errors.push(error),
  })
  const resume = asked.map((one) => answer(one, { approved: true }))
  const events = await collect(later.agent, input(history, { resume }))
  expect(last(events)).toMatchObject({ type: 'RUN_ERROR', code: 'tool-not-found' })
  const [error] = errors
  expect(error).toBeInstanceOf(ToolNotFoundError)
  expect(error).toMatchObject({
    toolName: 'GetWeather',
    toolParams: { city: 'x' },
    availableTools: ['GetTime'],
  })
  expect([known.runs.length, later.model.requests.length]).toEqual([0, 0])

  const denied = await collect(
    later.agent,
    input(history, { resume: asked.map((one) => answer(one, { approved: false })) }),
  )
  expect(results(denied).map(({ own }) => own)).toEqual([{ outcome: 'denied' }, { outcome: 'denied' }])
})

test('S1.14 no console output in any approval path', async () => {
  const written: unknown[] = []
  const { log, warn, error } = console
  Object.assign(console, {
    log: (...text: unknown[]) => written.push(text),
    warn: (...text: unknown[]) => written.push(text),
    error: (...text: unknown[]) => written.push(text),
  })
  try {
    const model = scriptedModel([call(['c1', 'GetWeather', {}]), say('ok')])
    const agent = createAgent({
      model,
      tools: [weather().tool],
      approvals: { secret: SECRET, ledger: { ...memoryLedger(), durable: true } },
    })
    const { history, first } = await ask(agent)
    await collect(agent, input(history, { resume: [answer(first, { approved: true })] }))
  } finally {
    Object.assign(console, { log, warn, error })
  }
  expect(written).toEqual([])
})

test('bad options fail at construction with their name', () => {
  const bad = (options: object) => () => createAgent({ model: scriptedModel([]), ...options })
  expect(bad({ model: {} })).toThrow(/model/)
  expect(bad({ maxSteps: 0 })).toThrow(/maxSteps/)
  expect(bad({ approvals: { secret: 'short' } })).toThrow(/secret/)
  expect(bad({ tools: [weather().tool, weather().tool] })).toThrow(/GetWeather/)
  expect(() => createAgent({ model: scriptedModel([]), approvals: { secret: 'short' } })).toThrow(
    CountersignError,
  )
})
