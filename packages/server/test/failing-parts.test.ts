import type { Ledger } from '@countersign/server'
import { answerQueue, memoryLedger, ToolError } from '@countersign/server'
import { expect, onTestFinished, test, vi } from 'vitest'
import {
  answer,
  ask,
  call,
  collect,
  counted,
  input,
  last,
  requests,
  results,
  say,
  testAgent,
  user,
} from './support.js'

/** Rejections that nobody listened for, while a test runs. */
function watchRejections(): readonly unknown[] {
  const seen: unknown[] = []
  const note = (reason: unknown) => seen.push(reason)
  const before = process.listeners('unhandledRejection')
  process.removeAllListeners('unhandledRejection')
  process.on('unhandledRejection', note)
  onTestFinished(() => {
    process.off('unhandledRejection', note)
    for (const listener of before) process.on('unhandledRejection', listener)
  })
  return seen
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 20))

test('a logger that throws stops nothing: an approved call runs and its result is told', async () => {
  const ledger = memoryLedger()
  const send = counted('send', { needsApproval: true })
  const failing: Ledger = { ...ledger, audit: () => Promise.reject(new Error('no trail')) }
  vi.spyOn(console, 'warn').mockImplementation(() => {})
  const { agent } = testAgent([call(['c1', 'send', {}]), say('ok')], {
    tools: [send.tool],
    approvals: { ledger: failing },
    warn: () => {
      throw new Error('no log')
    },
  })
  const { history, first } = await ask(agent)
  const events = await collect(agent, input(history, { resume: [answer(first, { approved: true })] }))
  expect(results(events)).toMatchObject([{ content: { done: 'send' } }])
})

test('an error handler that throws takes no event away', async () => {
  vi.spyOn(console, 'warn').mockImplementation(() => {})
  const { agent } = testAgent(
    () => {
      throw new Error('no model')
    },
    {
      onError: () => {
        throw new Error('no log')
      },
    },
  )
  expect(last(await collect(agent, input([user('go')])))).toMatchObject({
    type: 'RUN_ERROR',
    code: 'model-failed',
  })
})

test.each(['message', 'bind'])(
  'a tool whose %s throws has failed: the ledger is not blamed, and nobody is asked',
  async (name) => {
    const boom = () => {
      throw new Error('a bug')
    }
    const send = counted('send', { needsApproval: true, [name]: boom })
    const { agent } = testAgent([call(['c1', 'send', { key: 'k' }]), say('ok')], { tools: [send.tool] })
    const events = await collect(agent, input([user('go')]))
    expect(requests(events)).toEqual([])
    expect(results(events)).toMatchObject([{ own: { outcome: 'error', code: 'tool-failed' } }])
    expect(send.runs).toEqual([])
  },
)

test.each([true, false])(
  'the message of a ToolError ends a run with failureMode throw (approved: %s)',
  async (needsApproval) => {
    const fails = counted('send', {
      needsApproval,
      failureMode: 'throw',
      execute: () => {
        throw new ToolError('There is no such account.')
      },
    })
    const { agent } = testAgent([call(['c1', 'send', { key: 'k' }]), say('ok')], { tools: [fails.tool] })
    const run = async () => {
      if (!needsApproval) return input([user('go')])
      const { history, first } = await ask(agent)
      return input(history, { resume: [answer(first, { approved: true })] })
    }
    expect(last(await collect(agent, await run()))).toMatchObject({
      code: 'tool-failed',
      message: 'There is no such account.',
    })
  },
)

test('a mask that answers what JSON cannot say asks nothing, rather than showing what it was to hide', async () => {
  for (const redact of [
    () => ({ n: 1n }),
    () => {
      throw new Error('no mask')
    },
  ]) {
    const send = counted('send', { needsApproval: true, redact })
    const { agent } = testAgent([call(['c1', 'send', { key: 'k' }]), say('ok')], { tools: [send.tool] })
    const events = await collect(agent, input([user('go')]))
    expect(requests(events)).toEqual([])
    expect(results(events)).toMatchObject([{ own: { outcome: 'error', code: 'tool-failed' } }])
    expect(send.runs).toEqual([])
  }
})

test('a mask that answers nothing hides the arguments', async () => {
  const send = counted('send', { needsApproval: true, redact: () => undefined })
  const { agent } = testAgent([call(['c1', 'send', { key: 'k' }])], { tools: [send.tool] })
  expect((await ask(agent)).first.approval.display).toBeNull()
})

const twice = call(['a', 'send', {}], ['b', 'send', {}])
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

test('an answer that fails while another is still carried out is told in its turn, and not to the process', async () => {
  const rejections = watchRejections()
  const ledger = memoryLedger()
  const send = counted('send', { needsApproval: true, execute: () => pause(20) })
  let broken: string | undefined
  const failing: Ledger = {
    ...ledger,
    claim: async (ref, ...more) =>
      ref.approvalId === broken
        ? { status: 'repeat', outcome: { type: 'result', content: 'no JSON' }, late: false }
        : ledger.claim(ref, ...more),
  }
  const { agent } = testAgent([twice, say('ok')], { tools: [send.tool], approvals: { ledger: failing } })
  const { history, asked } = await ask(agent)
  broken = asked[1]?.approval.id
  const resume = asked.map((one) => answer(one, { approved: true }))
  const events = await collect(agent, input(history, { resume }))
  expect(results(events)).toMatchObject([{ id: 'a' }])
  expect(last(events)).toMatchObject({ type: 'RUN_ERROR' })
  await settled()
  expect(rejections).toEqual([])
})

test('an answer into an open run that fails while the next question is read ends the run, and not the process', async () => {
  const rejections = watchRejections()
  const ledger = memoryLedger()
  const send = counted('send', { needsApproval: true })
  const first = testAgent([twice], { tools: [send.tool], approvals: { ledger } })
  const { history, asked } = await ask(first.agent)
  const [a, b] = asked
  const slow: Ledger = {
    ...ledger,
    lookup: async (ref) => {
      if (ref.approvalId === b?.approval.id) await pause(20)
      return ledger.lookup(ref)
    },
  }
  const answers = answerQueue()
  const { agent } = testAgent([say('ok')], {
    tools: [send.tool],
    approvals: { ledger: slow },
    generateId: () => {
      throw new Error('no ids left')
    },
  })
  for (const one of [a, b])
    void answers.put({
      interruptId: String(one?.approval.id),
      status: 'resolved',
      payload: { approved: true },
    })
  expect(last(await collect(agent, input(history), { answers }))).toMatchObject({ type: 'RUN_ERROR' })
  await settled()
  expect(rejections).toEqual([])
})
