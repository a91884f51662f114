import { readdirSync, readFileSync } from 'node:fs'
import { failed, type scriptedModel, ToolError, toProviderText, toResultContent } from '@countersign/server'
import { drainOutputs, planFromMap, runPlan } from '@countersign/server/plan'
import { expect, test } from 'vitest'
import { answer, ask, call, collect, counted, input, results, say, testAgent, user } from './support.js'

const boom = () =>
  counted('boom', {
    execute: () => {
      throw new ToolError('disk full')
    },
  })

/** What a provider would be sent for each call. */
const sent = ({ requests }: ReturnType<typeof scriptedModel>) =>
  requests
    .at(-1)
    ?.messages.flatMap(({ content }) =>
      typeof content === 'string'
        ? []
        : content.flatMap((part) =>
            part.type === 'tool-result' ? [[part.toolCallId, toProviderText(part.outcome)] as const] : [],
          ),
    )

test('S2.17 S2.52 S2.45 S2.46 S2.47 S2.48 the four rows of payloads, one output for each call of the turn', async () => {
  const send = counted('send', { needsApproval: true, execute: () => ({ sent: true }) })
  const calls = call(
    ['ok', 'send', {}],
    ['no', 'send', {}],
    ['bare', 'send', {}],
    ['left', 'send', {}],
    ['err', 'boom', {}],
  )
  const { agent, model } = testAgent([calls, say('ok')], { tools: [send.tool, boom().tool] })
  const { history, asked } = await ask(agent)
  const answers = asked.flatMap((one) => {
    switch (one.toolCallId) {
      case 'ok':
        return [answer(one, { approved: true })]
      case 'no':
        return [answer(one, { approved: false, reason: 'Out of scope.' })]
      case 'bare':
        return [answer(one, { approved: false })]
      default:
        return [{ interruptId: one.approval.id, status: 'cancelled' as const }]
    }
  })
  await collect(agent, input(history, { resume: answers }))
  expect(sent(model)).toEqual([
    ['ok', '{"sent":true}'],
    ['no', '{"kind":"denied","reason":"Out of scope."}'],
    ['bare', '{"kind":"denied"}'],
    ['left', '{"kind":"cancelled"}'],
    ['err', '{"kind":"execution_error","reason":"disk full"}'],
  ])
})

test('S2.47 a person who goes on without answering cancels the call, and the model reads why', async () => {
  const send = counted('send', { needsApproval: true })
  const { agent, model } = testAgent([call(['c1', 'send', {}]), say('ok')], { tools: [send.tool] })
  const { history } = await ask(agent)
  await collect(agent, input([...history, user('never mind')]))
  expect(sent(model)).toEqual([['c1', '{"kind":"cancelled","reason":"user moved on"}']])
})

test('S2.49 an application may fail a call with a kind of its own', () => {
  const outcome = failed('quota_exceeded', 'Tomorrow again.')
  expect(toProviderText(outcome)).toBe('{"kind":"quota_exceeded","reason":"Tomorrow again."}')
  expect(toResultContent(outcome)).toEqual({
    content: '{"type":"execution-quota_exceeded","reason":"Tomorrow again."}',
    flag: { outcome: 'error' },
  })
})

test('S2.50 outcomes stay structured until the one function that writes them for a provider', async () => {
  const secret = counted('secret', { execute: () => ({ password: 'hunter2', name: 'ann' }) })
  const plan = planFromMap(
    () => false,
    {},
  )([{ toolCallId: 'a', toolName: 'secret', arguments: '{}', input: {} }])
  const [output] = await drainOutputs(runPlan(plan, { tools: [secret.tool] }))
  expect(output?.outcome).toEqual({ kind: 'ok', value: { password: 'hunter2', name: 'ann' } })

  const root = new URL('../src/', import.meta.url)
  const writers = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && /toProviderText\(/.test(readFileSync(new URL(file, root), 'utf8')),
  )
  expect(writers).toEqual(['outcome.ts'])
})

test('S2.53 a tool that returns something like a denial has succeeded all the same', async () => {
  for (const value of [
    { kind: 'denied' },
    { type: 'execution-denied' },
    { kind: 'cancelled', reason: 'x' },
  ]) {
    const odd = counted('odd', { execute: () => value })
    const { agent, model } = testAgent([call(['c1', 'odd', {}]), say('ok')], { tools: [odd.tool] })
    const events = await collect(agent, input([user('go')]))
    expect(results(events)).toEqual([{ id: 'c1', content: value, own: undefined }])
    expect(model.requests[1]?.messages.at(-1)?.content).toMatchObject([{ outcome: { kind: 'ok', value } }])
  }
})

test('S2.51 a failure without a reason keeps none, on any way', async () => {
  const { agent } = testAgent([call(['c1', 'send', {}]), say('ok')], {
    tools: [counted('send', { needsApproval: true }).tool],
  })
  const { history, first } = await ask(agent)
  const events = await collect(agent, input(history, { resume: [answer(first, { approved: false })] }))
  expect(Object.keys(results(events)[0]?.content)).toEqual(['type'])
})

test('S2.6 a turn without calls ends the run: nothing is planned, asked or run', async () => {
  const { agent, model } = testAgent([say('just words')], {
    tools: [counted('send', { needsApproval: true }).tool],
  })
  const events = await collect(agent, input([user('hi')]))
  expect(events.some(({ type }) => type === 'CUSTOM' || type === 'TOOL_CALL_RESULT')).toBe(false)
  expect(model.requests.length).toBe(1)
})
