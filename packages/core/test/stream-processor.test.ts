import { type AGUIEvent, isCountersignError, StreamProcessor } from '@countersign/core'
import { expect, test } from 'vitest'

const run = { threadId: 't', runId: 'r' }
const said = (text: string) => [
  { type: 'TEXT_MESSAGE_START', messageId: 'm' },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: text },
  { type: 'TEXT_MESSAGE_END', messageId: 'm' },
]
const whole = [{ type: 'RUN_STARTED', ...run }, ...said('Hello'), { type: 'RUN_FINISHED', ...run }]

async function* streamed(...batches: readonly unknown[]) {
  yield* batches
}

async function errorOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  return isCountersignError(error) ? error.code : String(error)
}

test('events of a stream become messages, one by one, without a client', () => {
  const processor = new StreamProcessor({ threadId: 't' })
  const seen: string[] = []
  processor.subscribe(() => seen.push(processor.getSnapshot().status))
  for (const event of whole) expect(processor.process(event)).toBe(undefined)
  expect(processor.getSnapshot().messages.map(({ parts }) => parts)).toEqual([
    [{ type: 'text', text: 'Hello' }],
  ])
  expect([seen[0], seen.at(-1)]).toEqual(['submitted', 'ready'])
})

test('a whole stream is taken in the pieces in which it comes, several runs after one another', async () => {
  const processor = new StreamProcessor()
  await processor.processStream(streamed(whole[0], whole.slice(1, 3), whole.slice(3)))
  await processor.processStream(streamed(whole.map((event) => ({ ...event, runId: 'r2' }))))
  expect(processor.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
})

test('the batches of readServerSentEvents are taken as they are', async () => {
  const processor = new StreamProcessor()
  await processor.processStream(streamed(whole.map((data) => ({ data, id: '1' }))))
  expect(processor.messageIds).toEqual(['m'])
})

test('an approval request waits for the person', async () => {
  const processor = new StreamProcessor()
  const call = [
    { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'remove' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: '{}' },
    { type: 'TOOL_CALL_END', toolCallId: 'c' },
  ]
  const interrupts = [{ id: 'a', reason: 'tool_call', toolCallId: 'c' }]
  const end = { type: 'RUN_FINISHED', ...run, outcome: { type: 'interrupt', interrupts } }
  await processor.processStream(streamed([whole[0], ...call, end]))
  expect(processor.getSnapshot()).toMatchObject({
    status: 'awaiting-approval',
    pendingApprovals: [{ id: 'c', approval: { id: 'a' } }],
  })
})

test('what breaks a rule fails the run, and what was said before it stays', async () => {
  const processor = new StreamProcessor({ threadId: 't' })
  const broken = streamed([whole[0], ...said('Hello'), { type: 'TEXT_MESSAGE_END', messageId: 'm' }])
  expect(await errorOf(processor.processStream(broken))).toBe('protocol-violation')
  expect(processor.getSnapshot()).toMatchObject({ status: 'error', error: { code: 'protocol-violation' } })
  expect(processor.messageIds).toEqual(['m'])
  await processor.processStream(streamed(whole.map((event) => ({ ...event, runId: 'r2' }))))
  expect(processor.getSnapshot().status).toBe('ready')
})

test('events of another thread, a stream that stops too early and one that throws are errors', async () => {
  const other = new StreamProcessor({ threadId: 'mine' })
  expect(await errorOf(other.processStream(streamed(whole)))).toBe('protocol-violation')
  const cut = new StreamProcessor()
  expect(await errorOf(cut.processStream(streamed(whole.slice(0, 3))))).toBe('truncated-stream')
  expect(cut.getSnapshot().status).toBe('error')
  const failing = new StreamProcessor()
  const throwing = async function* () {
    yield whole[0]
    throw new Error('the cable was cut')
  }
  expect(await errorOf(failing.processStream(throwing()))).toBe('connection-failed')
})

test('RUN_ERROR is what the snapshot says, and no exception', async () => {
  const processor = new StreamProcessor()
  await processor.processStream(streamed([whole[0], { type: 'RUN_ERROR', message: 'no more' }]))
  expect(processor.getSnapshot()).toMatchObject({ status: 'error', error: { message: 'no more' } })
})

test('an abort ends the stream between two events', async () => {
  const processor = new StreamProcessor()
  const stop = new AbortController()
  let closed = false
  async function* endless() {
    try {
      yield whole.slice(0, 3)
      stop.abort()
      yield* whole.slice(3)
    } finally {
      closed = true
    }
  }
  await processor.processStream(endless(), { signal: stop.signal })
  expect(closed).toBe(true)
  expect(processor.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
})

test('whoever watches one message hears of that one', () => {
  const processor = new StreamProcessor()
  let heard = 0
  processor.subscribeMessage('m', () => heard++)
  for (const event of whole) processor.process(event)
  expect(heard).toBeGreaterThan(1)
  const before = heard
  const next: AGUIEvent = { type: 'RUN_STARTED', threadId: 't', runId: 'r2' }
  processor.process(next)
  expect(heard).toBe(before)
  expect(processor.getMessage('m')?.role).toBe('assistant')
})
