import type { Ledger } from '@countersign/server'
import { answerQueue, memoryLedger } from '@countersign/server'
import { expect, onTestFinished, test } from 'vitest'
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
    expect(results(events)).toMatchObject([{ own: { outcome: 'error', code: 'ledger-unavailable' } }])
    expect(send.runs).toEqual([])
  }
})

test('a mask that answers nothing hides the arguments', async () => {
  const send = counted('send', { needsApproval: true, redact: () => undefined })
  const { agent } = testAgent([call(['c1', 'send', { key: 'k' }])], { tools: [send.tool] })
  expect((await ask(agent)).first.approval.display).toBeNull()
})

test('two answers that cannot be carried out end the run once, and nothing is left unheard', async () => {
  const rejections = watchRejections()
  const ids = ['a', 'b'] as const
  const { agent } = testAgent([call(...ids.map((id) => [id, 'send', {}] as const)), say('ok')], {
    tools: [counted('send', { needsApproval: true }).tool],
    approvals: {
      confirm: () => {
        // it is asked with what the caller has no hold on: nothing that it does may reach the process
        throw new Error('no proof')
      },
    },
  })
  const answers = answerQueue()
  const given = input([user('go')])
  let asked = 0
  for await (const event of agent.run(given, { answers })) {
    if (event.type !== 'CUSTOM' || event.name !== 'approval-requested') continue
    asked++
    const { approval } = event.value as { approval: { id: string } }
    void answers.put({ interruptId: approval.id, status: 'resolved', payload: { approved: true } })
    if (asked === 2) setTimeout(() => answers.close(), 10)
  }
  await settled()
  expect(rejections).toEqual([])
})

test('a history whose questions wait in an open run leaves no rejection unheard where carrying them out fails', async () => {
  const rejections = watchRejections()
  const ledger = memoryLedger()
  const send = counted('send', { needsApproval: true })
  const first = testAgent([call(['a', 'send', {}], ['b', 'send', {}])], {
    tools: [send.tool],
    approvals: { ledger },
  })
  const { history, asked } = await ask(first.agent)
  // the same secret and ledger, but the tool is gone when the answers come
  const answers = answerQueue()
  const { agent } = testAgent([say('ok')], { tools: [counted('other').tool], approvals: { ledger } })
  for (const one of asked)
    void answers.put({ interruptId: one.approval.id, status: 'resolved', payload: { approved: true } })
  const events = await collect(agent, input(history), { answers })
  expect(last(events).type).toMatch(/RUN_(ERROR|FINISHED)/)
  await settled()
  expect(rejections).toEqual([])
  expect(send.runs).toEqual([])
})
