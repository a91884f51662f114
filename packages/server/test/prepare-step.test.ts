import type { Message } from '@countersign/core'
import { memoryThreads, type StepContext, scriptedModel } from '@countersign/server'
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
  requests,
  results,
  say,
  testAgent,
  user,
} from './support.js'

const look = counted('look')
const remove = counted('remove', { needsApproval: true })

const texts = (messages: readonly { readonly role: string; readonly content: unknown }[]) =>
  messages.map(({ role, content }) => `${role} ${JSON.stringify(content)}`)

test('T30 prepareStep chooses model, tools, system prompt and messages of one step; the next is as the agent has it', async () => {
  const small = scriptedModel([call(['c1', 'look', {}])])
  const seen: Omit<StepContext, 'signal' | 'messages' | 'write'>[] = []
  const { agent, model } = testAgent([say('Done.')], {
    tools: [look.tool, remove.tool],
    system: 'Be brief.',
    async prepareStep({ signal: _, messages: __, write: ___, ...step }) {
      seen.push(step)
      if (step.step > 1) return undefined
      return { model: small, tools: ['look'], system: 'Look first.', messages: [user('Summary: go.')] }
    },
  })
  const given = input([user('old'), user('go')])
  await collect(agent, given, { context: { subject: 'ann', plan: 'free' } })
  const [first] = small.requests
  expect(first?.system).toBe('Look first.')
  expect(first?.tools.map(({ name }) => name)).toEqual(['look'])
  expect(texts(first?.messages ?? [])).toEqual(['user [{"type":"text","text":"Summary: go."}]'])
  const [second] = model.requests
  expect(second?.system).toBe('Be brief.')
  expect(second?.tools.map(({ name }) => name)).toEqual(['look', 'remove'])
  expect(second?.messages.map(({ role }) => role)).toEqual(['user', 'user', 'assistant', 'tool'])
  const { threadId, runId } = given
  const context = { subject: 'ann', plan: 'free' }
  expect(seen).toEqual([
    { threadId, runId, step: 1, usage: [], context },
    { threadId, runId, step: 2, usage: [], context },
  ])
})

test('T30 prepareStep learns what the run has used so far', async () => {
  const used: unknown[] = []
  const usage = { inputTokens: 7, outputTokens: 3 }
  const { agent } = testAgent([[{ type: 'usage', usage }, ...call(['c1', 'look', {}])], say('Done.')], {
    tools: [look.tool],
    prepareStep: ({ usage }) => {
      used.push(usage)
      return undefined
    },
  })
  await collect(agent, input([user('go')]))
  expect(used).toEqual([[], [expect.objectContaining(usage)]])
})

test('T30 a tool that was taken away cannot be called: the call is refused as unknown, and nothing runs', async () => {
  const gone = counted('gone')
  const { agent, model } = testAgent([call(['c1', 'gone', {}]), say('Done.')], {
    tools: [look.tool, gone.tool],
    prepareStep: () => ({ tools: [look.tool] }),
  })
  const events = await collect(agent, input([user('go')]))
  expect(results(events)).toMatchObject([
    { id: 'c1', content: { reason: expect.stringContaining('no tool') } },
  ])
  expect(gone.runs).toEqual([])
  expect(model.requests.length).toBe(2)
})

test('T30 an approval asked under one step is answered later, under steps that do not have its tool', async () => {
  const removing = counted('remove', { needsApproval: true })
  const { agent, model } = testAgent([call(['c1', 'remove', { path: 'a' }]), say('Done.')], {
    tools: [look.tool, removing.tool],
    prepareStep: ({ messages }) => ({ tools: messages.length > 1 ? ['look'] : ['remove'] }),
  })
  const { history, first } = await ask(agent)
  const events = await collect(agent, input(history, { resume: [answer(first, { approved: true })] }))
  expect(results(events)).toMatchObject([{ id: 'c1', content: { done: 'remove' } }])
  expect(removing.runs).toEqual([{ path: 'a' }])
  expect(model.requests[1]?.tools.map(({ name }) => name)).toEqual(['look'])
})

test('T30 a tool that only the step has runs, but asks for no approval: no later run could find it', async () => {
  const own = counted('own')
  const careful = counted('careful', { needsApproval: true })
  const warnings: string[] = []
  const { agent, model } = testAgent([call(['c1', 'own', {}], ['c2', 'careful', {}]), say('Done.')], {
    tools: [look.tool],
    warn: (message) => void warnings.push(message),
    prepareStep: () => ({ tools: ['look', own.tool, careful.tool] }),
  })
  const events = await collect(agent, input([user('go')]))
  expect(results(events)).toMatchObject([
    { id: 'c2', own: { outcome: 'denied' } },
    { id: 'c1', content: { done: 'own' } },
  ])
  expect(requests(events)).toEqual([])
  expect(careful.runs).toEqual([])
  expect(warnings).toEqual([expect.stringContaining('add it to the agent')])
  expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(['look', 'own', 'careful'])
})

test("T30 a grant for the agent's tool does not let another tool of its name run", async () => {
  const context = { subject: 'ann' }
  const removing = counted('remove', { needsApproval: true, scopes: ['session'] })
  const other = counted('remove', { needsApproval: true, scopes: ['session'] })
  let chosen = false
  const { agent } = testAgent(
    [call(['c1', 'remove', {}]), say('Done.'), call(['c2', 'remove', {}]), say('Done.')],
    { tools: [removing.tool], prepareStep: () => (chosen ? { tools: [other.tool] } : undefined) },
  )
  const { history, first } = await ask(agent, {}, { context })
  const resume = [answer(first, { approved: true, scope: 'session' })]
  await collect(agent, input(history, { resume }), { context })
  chosen = true
  const events = await collect(agent, input([user('again')]), { context })
  expect(results(events)).toMatchObject([{ id: 'c2', own: { outcome: 'denied' } }])
  expect([removing.runs.length, other.runs.length]).toEqual([1, 0])
})

test('T30 trimming leaves the stored conversation and later steps whole; a result without its call is left out', async () => {
  const threads = memoryThreads()
  const { agent, model } = testAgent([call(['c1', 'look', {}]), say('Done.'), say('Again.')], {
    tools: [look.tool],
    threads,
    prepareStep: ({ messages, step }) => {
      if (step === 1) return undefined
      for (const message of messages) if (message.role === 'user') message.content = 'changed'
      return { messages: messages.filter(({ role }) => role === 'tool' || role === 'user') }
    },
  })
  const first = input([user('go')])
  const { messages } = await agent.generate(first)
  expect(texts(model.requests[1]?.messages ?? [])).toEqual(['user [{"type":"text","text":"changed"}]'])
  expect(messages.map(({ role, parts }) => [role, ...parts.map(({ type }) => type)])).toEqual([
    ['user', 'text'],
    ['assistant', 'tool-call', 'tool-result'],
    ['assistant', 'text'],
  ])
  await agent.generate(input([user('more')]))
  expect(texts(model.requests[2]?.messages ?? [])[0]).toBe('user [{"type":"text","text":"go"}]')
})

test('T30 tools and the policy get the conversation, whatever the model gets', async () => {
  const seen: unknown[] = []
  const see = counted('see', { execute: (_, { messages }) => seen.push(messages.length) })
  const { agent } = testAgent([call(['c1', 'see', {}]), say('Done.')], {
    tools: [see.tool],
    approvals: {
      policy: (_, { messages }) => {
        seen.push(messages.length)
        return 'allow'
      },
    },
    prepareStep: () => ({ messages: [user('summary')] }),
  })
  await collect(agent, input([user('one'), user('two'), user('go')]))
  expect(seen).toEqual([3, 3, 3])
})

test('T30 messages with a call but without its result end the run with unreconciled-history; the model is not called', async () => {
  const { agent, model } = testAgent([call(['c1', 'look', {}])], {
    tools: [look.tool],
    prepareStep: ({ messages }) => ({ messages: messages.filter(({ role }) => role !== 'tool') }),
  })
  const events = await collect(agent, input([user('go')]))
  expect(last(events)).toMatchObject({ code: 'unreconciled-history', message: expect.stringContaining('c1') })
  expect(model.requests.length).toBe(1)
  expect(results(events).length).toBe(1)
})

test.each([
  ['a name that nobody has', { tools: ['nobody'] }, 'invalid-tool'],
  ['no model', { model: {} }, 'invalid-option'],
])('T30 %s ends the run with an error, and no model is called', async (_, chosen, code) => {
  // What JavaScript could return.
  const { agent, model } = testAgent([], { prepareStep: () => chosen as object })
  expect(last(await collect(agent, input([user('go')])))).toMatchObject({ type: 'RUN_ERROR', code })
  expect(model.requests).toEqual([])
})

test('T30 an approval that the provider waits for is sent from a copy of the messages; without its call the run ends, and it is sent later', async () => {
  const asks = [
    {
      type: 'tool-call' as const,
      id: '',
      name: 'search',
      arguments: '{}',
      providerExecuted: true,
      approval: { id: 'mcpr_1', state: 'requested' as const },
    },
    { type: 'finish' as const, reason: 'stop' },
  ]
  let chosen: (messages: readonly Message[]) => readonly Message[] = (messages) => messages
  const { agent, model } = testAgent([asks, say('Done.')], {
    prepareStep: ({ messages }) => ({ messages: chosen(messages) }),
  })
  const question = [user('go')]
  const asked = await collect(agent, input(question))
  const [first] = requests(asked)
  if (first === undefined) return expect.fail('nothing was asked')
  const history = fold(question, asked)
  const resume = [answer(first, { approved: true })]
  chosen = () => [user('nothing else')]
  const refused = await collect(agent, input(history, { resume }))
  expect(last(refused)).toMatchObject({ code: 'unreconciled-history' })
  chosen = (messages) => structuredClone([...messages])
  await collect(agent, input(history, { resume }))
  expect(model.requests.length).toBe(2)
  expect(model.requests[1]?.messages.at(-1)?.content).toMatchObject([
    { type: 'approval-response', approvalId: 'mcpr_1', approved: true },
  ])
})
