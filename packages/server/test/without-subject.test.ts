// Where nobody is signed in, and tokens that are none.

import type { Message, ResumeEntry } from '@countersign/core'
import { expect, test } from 'vitest'
import {
  answer,
  ask,
  call,
  collect,
  counted,
  input,
  refusals,
  results,
  say,
  testAgent,
  user,
} from './support.js'

const context = { subject: 'ann' }

const strip = <Kind extends Message>(message: Kind): Kind => {
  const bare = structuredClone(message)
  delete bare.metadata
  if (bare.role === 'assistant') for (const one of bare.toolCalls ?? []) delete one.metadata
  return bare
}

test('F20 the idempotency key of a call that nobody was asked about is its owner’s, its thread’s, its run’s and its own', async () => {
  const keyOf = async (subject: string | undefined, threadId: string, runId: string, toolCallId: string) => {
    const look = counted('look', { execute: (_, { idempotencyKey }) => idempotencyKey })
    const { agent } = testAgent([call([toolCallId, 'look', {}]), say('')], { tools: [look.tool] })
    const events = await collect(agent, input([user('go')], { threadId, runId }), { context: { subject } })
    const [result] = results(events)
    return String(result?.content)
  }
  const places = [
    ['ann', 't', 'r', 'c'],
    ['bob', 't', 'r', 'c'],
    [undefined, 't', 'r', 'c'],
    ['ann', 'u', 'r', 'c'],
    ['ann', 't', 's', 'c'],
    ['ann', 't', 'r', 'd'],
    ['ann', 't', 'r:c', 'x'],
    ['ann', 't', 'r', 'c:x'],
    ['an', 'nt', 'r', 'c'],
  ] as const
  const keys = await Promise.all(
    places.map(([subject, threadId, runId, id]) => keyOf(subject, threadId, runId, id)),
  )
  expect(new Set(keys).size).toBe(places.length)
  expect(keys[0]).toBe(await keyOf('ann', 't', 'r', 'c'))
  for (const key of keys) expect(key).toMatch(/^[\w-]{16,128}$/)
})

test('F20 a token that is there and no text is a wrong one: nothing stands in for it', async () => {
  for (const token of [null, 0, false, '', [], {}]) {
    const pay = counted('pay', { needsApproval: true })
    const { agent } = testAgent([call(['c1', 'pay', {}]), say('')], { tools: [pay.tool] })
    const { history, first } = await ask(agent, {}, { context })
    const entry: ResumeEntry = {
      interruptId: first.approval.id,
      status: 'resolved',
      payload: { approved: true },
      metadata: { countersign: { token } },
    }
    const events = await collect(agent, input(history, { resume: [entry] }), { context })
    expect(refusals(events), JSON.stringify(token)).toMatchObject([{ code: 'approval-malformed' }])
    const marked = structuredClone(history)
    for (const message of marked)
      if (message.role === 'assistant')
        for (const one of message.toolCalls ?? []) one.metadata = { countersign: { token } }
    const bare = { ...entry, metadata: {} }
    const second = await collect(agent, input(marked, { resume: [bare] }), { context })
    expect(refusals(second), JSON.stringify(token)).toMatchObject([{ code: 'approval-malformed' }])
    expect(pay.runs).toEqual([])
  }
})

test('F20 without a subject nobody gets the token of a question by its thread, call and arguments, nor closes it so', async () => {
  const pay = counted('pay', { needsApproval: true })
  const { agent } = testAgent([call(['c1', 'pay', { amount: 1 }]), say(''), say(''), say('')], {
    tools: [pay.tool],
  })
  const { history, first } = await ask(agent)
  const guessed = history.map(strip)
  for (const messages of [guessed, [...guessed, user('and now?')]]) {
    const events = await collect(agent, input(messages))
    expect(JSON.stringify(events)).not.toContain(first.approval.token)
    expect(JSON.stringify(events)).not.toContain(first.approval.id)
  }
  // whoever has the question still answers it, also without its token: the id of an approval cannot be guessed
  const { metadata: _, ...entry } = answer(first, { approved: true })
  await collect(agent, input(guessed, { resume: [entry] }))
  expect(pay.runs.length).toBe(1)
})
