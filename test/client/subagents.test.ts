import { approvalView, ChatClient, readSubagent, stream } from '@countersign/client'
import { type AGUIEvent, type RunAgentInput, toAGUIMessages } from '@countersign/core'
import { fromAGUIMessages } from '@countersign/core/ag-ui'
import { expect, onTestFinished, test } from 'vitest'

type Run = (input: RunAgentInput) => AGUIEvent[]

/** A client of an agent whose runs are these, in order. */
function openChat(...runs: Run[]) {
  const requests: RunAgentInput[] = []
  const warnings: string[] = []
  const connection = stream(async function* (input) {
    const { threadId, runId } = input
    requests.push(structuredClone(input))
    yield { type: 'RUN_STARTED', threadId, runId }
    yield runs[requests.length - 1]?.(input) ?? []
  })
  const client = new ChatClient({ connection, onWarning: (message) => warnings.push(message) })
  onTestFinished(client.dispose)
  return { client, requests, warnings }
}

const finished = ({ threadId, runId }: RunAgentInput): AGUIEvent => ({
  type: 'RUN_FINISHED',
  threadId,
  runId,
})
const announce = (subagentRunId: string, name: string, parentSubagentRunId?: string): AGUIEvent => ({
  type: 'SUBAGENT_STARTED',
  subagentRunId,
  name,
  ...(parentSubagentRunId && { parentSubagentRunId }),
})
const ends = (subagentRunId: string): AGUIEvent => ({ type: 'SUBAGENT_FINISHED', subagentRunId })

const says = (messageId: string, delta: string, subagentRunId?: string): AGUIEvent[] => {
  const by = subagentRunId === undefined ? {} : { subagentRunId }
  return [
    { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant', ...by },
    { type: 'TEXT_MESSAGE_CONTENT', messageId, delta, ...by },
    { type: 'TEXT_MESSAGE_END', messageId, ...by },
  ]
}

const thinks = (messageId: string, delta: string, subagentRunId?: string): AGUIEvent[] => {
  const by = subagentRunId === undefined ? {} : { subagentRunId }
  return [
    { type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning', ...by },
    { type: 'REASONING_MESSAGE_CONTENT', messageId, delta, ...by },
    { type: 'REASONING_MESSAGE_END', messageId, ...by },
  ]
}

const calls = (toolCallId: string, subagentRunId?: string): AGUIEvent[] => {
  const by = subagentRunId === undefined ? {} : { subagentRunId }
  return [
    { type: 'TOOL_CALL_START', toolCallId, toolCallName: 'send_mail', ...by },
    { type: 'TOOL_CALL_ARGS', toolCallId, delta: '{"to":"ada"}', ...by },
    { type: 'TOOL_CALL_END', toolCallId, ...by },
  ]
}

const planner = { id: 's1', name: 'Planner' }
const mailer = { id: 's2', name: 'Mailer', parents: [planner] }

test('messages, reasoning, activities and calls are attributed to the subagent that made them, by name', async () => {
  const { client, warnings } = openChat((input) => [
    announce('s1', 'Planner'),
    ...thinks('r1', 'I plan.', 's1'),
    ...says('m1', 'A plan.', 's1'),
    announce('s2', 'Mailer', 's1'),
    {
      type: 'ACTIVITY_SNAPSHOT',
      messageId: 'a1',
      activityType: 'PLAN',
      content: { done: 1 },
      subagentRunId: 's2',
    },
    ...thinks('r2', 'I mail.', 's2'),
    ...calls('c1', 's2'),
    { type: 'TOOL_CALL_RESULT', messageId: 't1', toolCallId: 'c1', content: 'sent', subagentRunId: 's2' },
    ends('s2'),
    ends('s1'),
    ...thinks('r3', 'I sum up.'),
    ...says('m2', 'Done.'),
    finished(input),
  ])
  await client.sendMessage('go')
  const [, ...messages] = client.getSnapshot().messages
  expect(messages.map(({ id, metadata }) => [id, readSubagent(metadata)])).toEqual([
    ['m1', planner],
    ['a1', mailer],
    ['c1', mailer],
    ['m2', undefined],
  ])
  expect(messages.map(({ parts }) => parts.map(({ type }) => type))).toEqual([
    ['reasoning', 'text'],
    ['data'],
    ['reasoning', 'tool-call', 'tool-result'],
    ['reasoning', 'text'],
  ])
  expect(warnings).toEqual([])
})

test('thoughts of one speaker never begin the message of another, whichever way they come', async () => {
  const { client } = openChat((input) => [
    announce('s1', 'Planner'),
    ...thinks('r1', 'I plan.', 's1'),
    ends('s1'),
    ...says('m1', 'Well.'),
    ...thinks('r2', 'Hm.'),
    announce('s2', 'Mailer'),
    ...says('m2', 'Sent.', 's2'),
    ends('s2'),
    finished(input),
  ])
  await client.sendMessage('go')
  const { messages } = client.getSnapshot()
  expect(messages.map(({ id, parts }) => [id, parts.map(({ type }) => type)])).toEqual([
    [expect.any(String), ['text']],
    ['r1', ['reasoning']],
    ['m1', ['text']],
    ['r2', ['reasoning']],
    ['m2', ['text']],
  ])
  expect(messages[1]?.metadata).toEqual({ subagent: planner })
  expect(fromAGUIMessages(toAGUIMessages(messages))).toEqual(messages)
})

test('who spoke goes along with the next request and comes back from it', async () => {
  const { client, requests } = openChat(
    (input) => [
      announce('s1', 'Planner'),
      ...thinks('r1', 'I plan.', 's1'),
      ...says('m1', 'A plan.', 's1'),
      ...thinks('r2', 'And on.', 's1'),
      ends('s1'),
      finished(input),
    ],
    (input) => [...says('m2', 'Yes.'), finished(input)],
  )
  await client.sendMessage('go')
  await client.sendMessage('and?')
  expect(requests[1]?.messages).toMatchObject([
    { role: 'user' },
    { id: 'r1', role: 'reasoning', subagentRunId: 's1' },
    { id: 'm1', role: 'assistant', subagentRunId: 's1', metadata: { subagent: planner } },
    { id: 'r2', role: 'reasoning', subagentRunId: 's1', metadata: { subagent: planner } },
    { role: 'user' },
  ])
  const { messages } = client.getSnapshot()
  expect(fromAGUIMessages(requests[1]?.messages ?? [])).toEqual(messages.slice(0, 4))
})

test('a snapshot tells who spoke, also of thoughts and activities', async () => {
  const { client } = openChat((input) => [
    {
      type: 'MESSAGES_SNAPSHOT',
      messages: [
        ...input.messages,
        { id: 'r1', role: 'reasoning', content: 'I plan.', subagentRunId: 's1' },
        { id: 'm1', role: 'assistant', content: 'Well.' },
        { id: 'a1', role: 'activity', activityType: 'PLAN', content: {}, subagentRunId: 's1' },
      ],
    },
    finished(input),
  ])
  await client.sendMessage('go')
  expect(client.getSnapshot().messages.map(({ id, metadata }) => [id, readSubagent(metadata)?.id])).toEqual([
    [expect.any(String), undefined],
    ['r1', 's1'],
    ['m1', undefined],
    ['a1', 's1'],
  ])
})

test('a nested approval says who asks, the outermost first, and is answered like any other', async () => {
  const { client, requests } = openChat(
    (input) => [
      announce('s1', 'Planner'),
      announce('s2', 'Mailer', 's1'),
      ...calls('c1', 's2'),
      {
        type: 'SUBAGENT_FINISHED',
        subagentRunId: 's2',
        outcome: { type: 'suspended', interruptIds: ['i1'] },
      },
      { type: 'SUBAGENT_FINISHED', subagentRunId: 's1', outcome: { type: 'suspended' } },
      {
        ...finished(input),
        outcome: {
          type: 'interrupt',
          interrupts: [{ id: 'i1', reason: 'tool_call', toolCallId: 'c1', subagentRunId: 's2' }],
        },
      } as AGUIEvent,
    ],
    (input) => [
      announce('s1', 'Planner'),
      announce('s2', 'Mailer', 's1'),
      { type: 'TOOL_CALL_RESULT', messageId: 't1', toolCallId: 'c1', content: 'sent', subagentRunId: 's2' },
      ends('s2'),
      ends('s1'),
      ...says('m1', 'Done.'),
      finished(input),
    ],
  )
  await client.sendMessage('go')
  const [part] = client.getSnapshot().pendingApprovals
  const view = part && approvalView(part)
  expect(view?.askedBy.map(({ text }) => text)).toEqual(['Planner', 'Mailer'])
  await client.addToolApprovalResponse({ id: 'i1', approved: true })
  expect(requests[1]?.resume).toMatchObject([{ interruptId: 'i1', payload: { approved: true } }])
  const settled = client.getSnapshot().messages.flatMap(({ parts }) => parts)
  expect(settled).toMatchObject([
    { type: 'text' },
    { type: 'tool-call', state: 'complete', metadata: { subagent: mailer } },
    { type: 'tool-result' },
    { type: 'text', text: 'Done.' },
  ])
})

test('an interrupt alone says who asks: for a call without an owner, and for what concerns no call', async () => {
  const { client } = openChat((input) => [
    announce('s1', 'Planner'),
    ...calls('c1'),
    ends('s1'),
    {
      ...finished(input),
      outcome: {
        type: 'interrupt',
        interrupts: [
          { id: 'i1', reason: 'tool_call', toolCallId: 'c1', subagentRunId: 's1' },
          { id: 'i2', reason: 'input_required', message: 'Which?', subagentRunId: 's1' },
        ],
      },
    } as AGUIEvent,
  ])
  await client.sendMessage('go')
  const { pendingApprovals, interrupts } = client.getSnapshot()
  const [part] = pendingApprovals
  expect(part && approvalView(part)?.askedBy.map(({ text }) => text)).toEqual(['Planner'])
  expect(readSubagent(interrupts[0]?.metadata)).toEqual(planner)
})

test('the agent itself asks as nobody, one that was never announced by its id, and a name is safe to show', async () => {
  const { client } = openChat((input) => [
    announce('s1', 'Mail\u202eer\n'),
    ...calls('c1'),
    ...calls('c2', 'unknown'),
    ...calls('c3', 's1'),
    ends('s1'),
    {
      ...finished(input),
      outcome: {
        type: 'interrupt',
        interrupts: ['c1', 'c2', 'c3'].map((id) => ({ id: `i-${id}`, reason: 'tool_call', toolCallId: id })),
      },
    } as AGUIEvent,
  ])
  await client.sendMessage('go')
  const askers = client.getSnapshot().pendingApprovals.map((part) => approvalView(part)?.askedBy ?? [])
  expect(askers.map((names) => names.map(({ text }) => text))).toEqual([
    [],
    ['unknown'],
    [expect.any(String)],
  ])
  expect(askers[2]?.[0]?.text).not.toContain('\u202e')
})

test('metadata that names no subagent properly names none', () => {
  for (const subagent of [undefined, null, 's1', [], { name: 'x' }, { id: 1 }])
    expect(readSubagent({ subagent })).toBeUndefined()
  expect(readSubagent(undefined)).toBeUndefined()
  expect(readSubagent({ subagent: { id: 's1', name: 1, parents: [1, { id: 's0' }] } })).toEqual({
    id: 's1',
    parents: [{ id: 's0' }],
  })
})
