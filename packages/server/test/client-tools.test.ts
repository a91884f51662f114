import { clientTool, type Message, toAGUIMessages } from '@countersign/core'
import { type Ledger, memoryLedger } from '@countersign/server'
import { expect, test } from 'vitest'
import * as z from 'zod'
import {
  answer,
  ask,
  call,
  collect,
  counted,
  input,
  last,
  refusals,
  results,
  say,
  testAgent,
  types,
  user,
} from './support.js'

const gated = { needsApproval: true } as const

const locate = clientTool({
  name: 'locate',
  description: 'Where the person is',
  input: z.object({}),
  needsApproval: true,
  execute: () => 'here',
})

test('S4.10 S1.62 an approved client tool is handed to the client, with its input and nothing replayed', async () => {
  const { agent, model } = testAgent([call(['c1', 'locate', {}]), say('there')], { tools: [locate] })
  const { history, first } = await ask(agent)
  const resume = [answer(first, { approved: true })]
  const events = await collect(agent, input(history, { resume }))
  expect(types(events)).toEqual(['RUN_STARTED', 'CUSTOM client-tool-ready', 'RUN_FINISHED'])
  expect(events[1]).toMatchObject({ value: { toolCallId: 'c1', toolName: 'locate', input: {} } })
  expect(last(events)).toMatchObject({ outcome: { type: 'success', pendingToolCallIds: ['c1'] } })
  expect(model.requests.length).toBe(1)
  expect(types(await collect(agent, input(history, { resume })))).toContain('CUSTOM client-tool-ready')

  const answered = [...history, { id: 'r1', role: 'tool' as const, toolCallId: 'c1', content: '"here"' }]
  const next = await collect(agent, input(answered))
  expect(results(next)).toEqual([])
  expect(model.requests[1]?.messages.at(-1)?.content).toMatchObject([
    { outcome: { kind: 'ok', value: 'here' } },
  ])
})

test('a client tool without approval ends the run with pendingToolCallIds; beside a gated call with one interrupt', async () => {
  const pick = clientTool({ name: 'pick', description: 'Picks', input: z.object({}), execute: () => 1 })
  const send = counted('send', gated)
  const tools = [pick, send.tool]
  const alone = testAgent([call(['c1', 'pick', {}])], { tools })
  expect(last(await collect(alone.agent, input([user('go')])))).toMatchObject({
    outcome: { type: 'success', pendingToolCallIds: ['c1'] },
    metadata: { finishReason: 'tool_calls' },
  })
  const both = testAgent([call(['c1', 'pick', {}], ['c2', 'send', {}])], { tools })
  const { events } = await ask(both.agent)
  expect(last(events)).toMatchObject({ outcome: { type: 'interrupt', interrupts: [{ toolCallId: 'c2' }] } })
})

test('tools the client brings run in the client; they may not shadow a server tool nor use client.', async () => {
  const send = counted('send')
  const { agent, model } = testAgent([call(['c1', 'mine', {}])], { tools: [send.tool] })
  const offered = ['mine', 'send', 'client.requestApproval'].map((name) => ({ name, description: 'x' }))
  const events = await collect(agent, input([user('go')], { tools: offered }))
  expect(last(events)).toMatchObject({ outcome: { pendingToolCallIds: ['c1'] } })
  expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(['send', 'mine'])
})

test('an approved client tool whose result has not come when the person speaks again is closed, and the model answers', async () => {
  const { agent, model } = testAgent([call(['c1', 'locate', {}]), say('never mind'), say('as I said')], {
    tools: [locate],
  })
  const { history, first } = await ask(agent)
  const resume = [answer(first, { approved: true })]
  expect(last(await collect(agent, input(history, { resume })))).toMatchObject({
    outcome: { pendingToolCallIds: ['c1'] },
  })
  for (const more of [{}, { resume }]) {
    const events = await collect(agent, input([...history, user('hello?')], more))
    // A page has it, and may have run it.
    expect(results(events)).toMatchObject([{ own: { outcome: 'error', code: 'interrupted' } }])
    expect(last(events)).toMatchObject({ outcome: { type: 'success' } })
  }
  expect(model.requests.length).toBe(3)
})

test('an approval of a client tool that comes together with the next message hands out the call, and the message is answered after its result', async () => {
  const { agent, model } = testAgent([call(['c1', 'locate', {}]), say('there')], { tools: [locate] })
  const { history, first } = await ask(agent)
  const said = [...history, user('and now?')]
  const events = await collect(agent, input(said, { resume: [answer(first, { approved: true })] }))
  expect(types(events)).toEqual(['RUN_STARTED', 'CUSTOM client-tool-ready', 'RUN_FINISHED'])
  expect(last(events)).toMatchObject({ outcome: { pendingToolCallIds: ['c1'] } })
  expect(model.requests.length).toBe(1)

  const result = { id: 'r1', role: 'tool' as const, toolCallId: 'c1', content: '"here"' }
  const next = await collect(agent, input([...said, result]))
  expect([results(next), last(next)]).toMatchObject([[], { outcome: { type: 'success' } }])
  expect(model.requests[1]?.messages.slice(-2).map(({ content }) => content)).toMatchObject([
    [{ outcome: { kind: 'ok', value: 'here' } }],
    [{ text: 'and now?' }],
  ])
})

for (const [lost, told] of [
  [1, 'is handed out by what the ledger has'],
  [Number.POSITIVE_INFINITY, 'is not handed out, nor told as interrupted, and the same yes gets it'],
] as const) {
  test(`an approved client tool whose record is made and ${lost} of the ledger's replies lost ${told}`, async () => {
    const ledger = memoryLedger()
    let left: number = lost
    const failing: Ledger = {
      ...ledger,
      async complete(...given) {
        const result = await ledger.complete(...given)
        if (left-- > 0) throw new Error('no reply')
        return result
      },
    }
    const { agent } = testAgent([call(['c1', 'locate', {}]), say('there')], {
      tools: [locate],
      approvals: { ledger: failing },
    })
    const { history, first } = await ask(agent)
    const again = () => collect(agent, input(history, { resume: [answer(first, { approved: true })] }))
    const events = await again()
    expect(results(events)).toEqual([])
    expect(types(events).includes('CUSTOM client-tool-ready')).toBe(lost === 1)
    expect(refusals(events).map(({ code }) => code)).toEqual(lost === 1 ? [] : ['ledger-unavailable'])
    expect(types(await again())).toContain('CUSTOM client-tool-ready')
  })
}

test('a hand-out that the ledger does not confirm is refused by the name of its call, and told to no model, also once the user has moved on', async () => {
  const ledger = memoryLedger()
  const silent: Ledger = { ...ledger, complete: () => Promise.reject(new Error('no reply')) }
  const { agent, model } = testAgent([call(['c1', 'locate', {}]), say('there')], {
    tools: [locate],
    approvals: { ledger: silent },
  })
  const { history, first } = await ask(agent)
  const resume = [answer(first, { approved: true })]
  const events = await collect(agent, input([...history, user('and now?')], { resume }))
  expect(refusals(events)).toMatchObject([{ code: 'ledger-unavailable', toolCallId: 'c1' }])
  expect(results(events)).toEqual([])
  expect(last(events)).toMatchObject({ type: 'RUN_ERROR', code: 'ledger-unavailable' })
  expect(model.requests.length).toBe(1)
})

test.each([true, false])(
  'generate names the calls that wait for the client, if its input has a protocol version: %s',
  async (isVersioned) => {
    const look = clientTool({
      name: 'look',
      description: 'Looks',
      input: z.object({}),
      execute: () => 'seen',
    })
    const send = counted('send')
    const turns = [call(['c1', 'look', {}], ['c2', 'send', {}])]
    const { agent } = testAgent(turns, { tools: [look, send.tool] })
    const given = (history: readonly Message[]) => {
      const { protocolVersion: _, ...bare } = input(history)
      return isVersioned ? input(history) : bare
    }
    const { messages, pendingToolCallIds } = await agent.generate(given([user('go')]))
    expect(pendingToolCallIds).toEqual(['c1'])
    // A run that finds the call open names it as well.
    const again = await agent.generate(given(toAGUIMessages(messages)))
    expect(again.pendingToolCallIds).toEqual(['c1'])
  },
)
