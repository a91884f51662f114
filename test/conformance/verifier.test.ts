import { ChatClient, stream } from '@countersign/client'
import { call, finish, result, scriptedConnection, text } from '@countersign/testing'
import { verified, verifyEvents, verifyRun } from '@countersign/testing/suites'
import { expect, test } from 'vitest'

const started = { type: 'RUN_STARTED', threadId: 't1', runId: 'r1' }
const finished = { type: 'RUN_FINISHED', threadId: 't1', runId: 'r1' }
const request = { threadId: 't1', runId: 'r1', messages: [] }
const said = [
  { type: 'TEXT_MESSAGE_START', messageId: 'm1' },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'Hello.' },
  { type: 'TEXT_MESSAGE_END', messageId: 'm1' },
]
const called = [
  { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'read', parentMessageId: 'm2' },
  { type: 'TOOL_CALL_END', toolCallId: 'c1' },
]
const answered = { type: 'TOOL_CALL_RESULT', messageId: 'm3', toolCallId: 'c1', content: 'done' }
const interrupt = { id: 'i1', reason: 'tool_call', toolCallId: 'c1' }
const asks = (...interrupts: object[]) => ({ ...finished, outcome: { type: 'interrupt', interrupts } })
const leaves = (...pendingToolCallIds: string[]) => ({
  ...finished,
  outcome: { type: 'success', pendingToolCallIds },
})

test('what a producer may send passes', () => {
  verifyRun([started, ...said, ...called, answered, finished], request)
  verifyRun([started, ...called, asks(interrupt)], request)
  verifyRun([started, ...called, leaves('c1')], request)
  verifyRun([{ type: 'RUN_ERROR', message: 'no model' }], request)
  const messages = [
    {
      id: 'm2',
      role: 'assistant' as const,
      toolCalls: [{ id: 'c1', type: 'function' as const, function: { name: 'read', arguments: '{}' } }],
    },
  ]
  verifyRun([started, answered, finished], { ...request, messages })
})

const breaches: Record<string, readonly [rule: RegExp, ...events: unknown[]]> = {
  'an end without a terminal event': [/RUN_FINISHED or RUN_ERROR is missing/, started, ...said],
  'no event at all': [/RUN_FINISHED or RUN_ERROR is missing/],
  'content without a start': [/not open/, started, said[1], finished],
  'an end inside a message': [/still open/, started, said[0], finished],
  'the run of another request': [/runId must be r1/, { ...started, runId: 'r2' }],
  'another thread at the end': [/threadId must be t1/, started, { ...finished, threadId: 't2' }],
  'a wrong value': [/delta: must be string/, started, said[0], { ...said[1], delta: 1 }],
  'a null for nothing': [/parentMessageId/, started, { ...called[0], parentMessageId: null }],
  'an unknown event': [/no such event/, started, { type: 'THINKING_START' }],
  'an unknown field': [/does not describe: .*extra/, started, { ...said[0], extra: 1 }],
  'an empty id': [/messageId is empty/, started, { ...said[0], messageId: '' }],
  'the reason of the end outside metadata': [/finishReason/, started, { ...finished, finishReason: 'stop' }],
  'what has no JSON form': [/no JSON form/, started, { type: 'CUSTOM', name: 'x', value: 1n }],
  'a result for no call': [/there is no call c1/, started, answered],
  'a result before the arguments are complete': [/not complete/, started, called[0], answered],
  'two results': [/has its result/, started, ...called, answered, { ...answered, messageId: 'm4' }],
  'a result under the id of a message': [
    /has the id m1/,
    started,
    ...said,
    ...called,
    { ...answered, messageId: 'm1' },
  ],
  'two interrupts of one id': [/must differ/, started, ...called, asks(interrupt, interrupt)],
  'an interrupt about no call': [/no call that waits/, started, asks(interrupt)],
  'an interrupt about a call that has its result': [
    /no call that waits/,
    started,
    ...called,
    answered,
    asks(interrupt),
  ],
  'an interrupt that names no call': [/which call/, started, asks({ id: 'i1', reason: 'tool_call' })],
  'a pending call left out': [/lacks c1/, started, ...called, leaves()],
  'a pending call that is none': [/does not wait/, started, ...called, answered, leaves('c1')],
  'a pending call twice': [/twice/, started, ...called, leaves('c1', 'c1')],
}

for (const [what, [rule, ...events]] of Object.entries(breaches)) {
  test(`a breach: ${what}`, () => {
    expect(() => verifyRun(events, request)).toThrow(rule)
  })
}

test('a connection that is verified breaks at the breach, and says it', async () => {
  const seen: unknown[] = []
  const server = scriptedConnection([
    [call('c1', 'read'), result('c1'), text('Read.'), finish()],
    [result('c9')],
  ])
  const chat = new ChatClient({ connection: verified(server, { onBreach: (error) => seen.push(error) }) })
  expect(await chat.sendMessage('Read it.')).toEqual({ status: 'sent' })
  expect(seen).toEqual([])
  expect(await chat.sendMessage('Again.')).toMatchObject({ status: 'failed' })
  expect(String(seen)).toMatch(/there is no call c9/)
  chat.dispose()
})

test('the end of a run that was stopped is not checked', async () => {
  const seen: unknown[] = []
  let open = () => {}
  const connection = stream(async function* ({ threadId, runId }) {
    yield { type: 'RUN_STARTED' as const, threadId, runId }
    await new Promise<void>((resolve) => {
      open = resolve
    })
  })
  const chat = new ChatClient({ connection: verified(connection, { onBreach: (error) => seen.push(error) }) })
  const sent = chat.sendMessage('Hello.')
  await expect.poll(() => chat.getSnapshot().status).toBe('streaming')
  chat.stop()
  open()
  await sent
  expect(seen).toEqual([])
  chat.dispose()
})

test('events are checked as they come', async () => {
  async function* events() {
    yield started
    yield [said[1]]
  }
  const taken: unknown[] = []
  const read = async () => {
    for await (const event of verifyEvents<unknown>(events(), request)) taken.push(event)
  }
  await expect(read()).rejects.toThrow(/not open/)
  expect(taken).toEqual([started])
})
