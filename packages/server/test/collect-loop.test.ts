import { type Agent, prepareMessagesForModel } from '@countersign/server'
import { collectToolApprovals, executeApprovedToolCalls } from '@countersign/server/plan'
import {
  createPartReader,
  fromResponseParts,
  isApprovalRequest,
  type PromptMessage,
  promptToAGUI,
  type ToolApprovalRequestPart,
  type ToolApprovalResponsePart,
  toolApprovalResponse,
  toolMessage,
  toPromptMessages,
  toResponseParts,
} from '@countersign/server/prompt'
import { expect, test } from 'vitest'
import { weather } from './answered.js'
import { call, counted, input, say, testAgent, user } from './support.js'

let count = 0
const newId = () => `message_${++count}`

/** The loop of a program that keeps its history as a prompt: ask the model, ask the person, go on until nothing is asked. */
async function converse(
  agent: Agent,
  start: readonly PromptMessage[],
  decide: (request: ToolApprovalRequestPart) => ToolApprovalResponsePart,
): Promise<readonly PromptMessage[]> {
  let history = start
  for (;;) {
    const read = createPartReader({ history })
    const { events } = await agent.generate(input(promptToAGUI(history)))
    const parts = toResponseParts(events.flatMap((event) => read(event)))
    history = [...history, ...fromResponseParts(parts, newId)]
    const requests = parts.filter(isApprovalRequest)
    if (requests.length === 0) return history
    history = [...history, toolMessage(requests.map(decide))]
  }
}

const go: PromptMessage = { id: 'u', role: 'user', content: [{ type: 'text', text: 'go' }] }
const answer = (request: ToolApprovalRequestPart, approved: boolean, reason?: string) =>
  toolApprovalResponse({ approvalId: request.approvalId, approved, reason })

test('S0.66 the loop: run, ask the person, append the answer, until nothing is asked', async () => {
  const tool = weather()
  const look = counted('look')
  const { agent, model } = testAgent(
    [
      call(['c1', 'GetWeather', { city: 'a' }], ['c2', 'look', {}]),
      call(['c3', 'GetWeather', {}]),
      say('Done.'),
    ],
    { tools: [tool.tool, look.tool] },
  )
  const asked: string[] = []
  const history = await converse(agent, [go], (request) => {
    asked.push(request.toolCallId)
    return answer(request, true)
  })
  expect(asked).toEqual(['c1', 'c3'])
  expect([tool.runs.length, look.runs.length, model.requests.length]).toEqual([2, 1, 3])
  expect(history.map(({ role }) => role).join(' ')).toBe(
    'user assistant tool tool tool assistant tool tool assistant',
  )
  expect(history.at(-1)?.content).toEqual([{ type: 'text', text: 'Done.' }])
  const named = history.flatMap(({ role, content }) => (role === 'tool' ? content : []))
  expect(named.flatMap((part) => (part.type === 'tool-result' ? [part.name] : []))).toEqual([
    'look',
    'GetWeather',
    'GetWeather',
  ])
})

test('S0.67 the batch: approve, deny with a reason, approve, in one tool message', async () => {
  const send = counted('send', { needsApproval: true })
  const calls = call(['c1', 'send', { n: 1 }], ['c2', 'send', { n: 2 }], ['c3', 'send', { n: 3 }])
  const { agent, model } = testAgent([calls, say('Done.')], { tools: [send.tool] })
  await converse(agent, [go], (request) =>
    request.toolCallId === 'c2' ? answer(request, false, 'Out of scope.') : answer(request, true),
  )
  // approved calls run side by side
  expect(send.runs.map((run) => JSON.stringify(run)).toSorted()).toEqual(['{"n":1}', '{"n":3}'])
  expect(model.requests[1]?.messages.at(-1)?.content).toMatchObject([
    { toolCallId: 'c1', outcome: { kind: 'ok' } },
    { toolCallId: 'c2', outcome: { kind: 'denied', reason: 'Out of scope.' } },
    { toolCallId: 'c3', outcome: { kind: 'ok' } },
  ])
})

test('S0.41 a request of turn 1 is answered in turn 3; the requests of turn 2 are their own', async () => {
  const send = counted('send', { needsApproval: true })
  const { agent, model } = testAgent(
    [call(['c1', 'send', { n: 1 }], ['c2', 'send', { n: 2 }]), say('Done.')],
    {
      tools: [send.tool],
    },
  )
  const { messages } = await agent.generate(input([user('go')]))
  const history = toPromptMessages(messages)
  const [one, two] = history.flatMap(({ content }) => [...content]).filter((part) => isApprovalRequest(part))
  if (one === undefined || two === undefined) throw new Error('two requests')
  const second = [...history, toolMessage([answer(two, false)])]
  const results = await executeApprovedToolCalls(agent, input(promptToAGUI(second)))
  expect([results.map(({ toolCallId }) => toolCallId), send.runs]).toEqual([['c2'], []])
  const third = [...second, ...fromResponseParts(results, newId), toolMessage([answer(one, true)])]
  await agent.generate(input(promptToAGUI(third)))
  expect([send.runs, model.requests.length]).toEqual([[{ n: 1 }], 2])
})

test('S1.64 the golden example: three messages stay, one tool message is added, the model sees no approval', async () => {
  const tool = weather()
  const { agent, model } = testAgent(
    [call(['call_1', 'GetWeather', { city: 'Tokyo' }]), say('72 degrees.')],
    { tools: [tool.tool], generateId: newId },
  )
  const { messages } = await agent.generate(input([user('What is the weather in Tokyo?', 'u')]))
  const asking = toPromptMessages(messages)
  const request = asking.flatMap(({ content }) => [...content]).find((part) => isApprovalRequest(part))
  if (request === undefined) throw new Error('a request')
  const before = [...asking, toolMessage([answer(request, true)])]
  expect(before).toEqual([
    { id: 'u', role: 'user', content: [{ type: 'text', text: 'What is the weather in Tokyo?' }] },
    {
      id: expect.any(String),
      role: 'assistant',
      content: [
        expect.objectContaining({
          type: 'tool-call',
          id: 'call_1',
          name: 'GetWeather',
          arguments: '{"city":"Tokyo"}',
        }),
        {
          type: 'tool-approval-request',
          approvalId: request.approvalId,
          toolCallId: 'call_1',
          metadata: expect.anything(),
        },
      ],
    },
    {
      role: 'tool',
      content: [
        { type: 'tool-approval-response', approvalId: request.approvalId, approved: true, scope: 'once' },
      ],
    },
  ])
  const frozen = structuredClone(before)
  const results = await executeApprovedToolCalls(agent, input(promptToAGUI(before)))
  const after = [...before, ...fromResponseParts(results, newId)]
  expect(after.slice(0, 3)).toEqual(frozen)
  expect(after.slice(3)).toEqual([
    {
      role: 'tool',
      content: [
        {
          type: 'tool-result',
          toolCallId: 'call_1',
          name: 'GetWeather',
          isFailure: false,
          result: { temp: 72 },
          messageId: expect.any(String),
          metadata: { countersign: { decided: expect.objectContaining({ decision: 'approve' }) } },
        },
      ],
    },
  ])
  expect(prepareMessagesForModel(promptToAGUI(after))).toEqual([
    { id: 'u', role: 'user', content: 'What is the weather in Tokyo?' },
    {
      id: expect.any(String),
      role: 'assistant',
      toolCalls: [
        { id: 'call_1', type: 'function', function: { name: 'GetWeather', arguments: '{"city":"Tokyo"}' } },
      ],
    },
    { id: expect.any(String), role: 'tool', toolCallId: 'call_1', content: '{"temp":72}' },
  ])
  await agent.generate(input(promptToAGUI(after)))
  expect([tool.runs.length, model.requests.length]).toEqual([1, 2])
  expect(collectToolApprovals(promptToAGUI(after), { excludeResolved: true }).approved).toEqual([])
})
