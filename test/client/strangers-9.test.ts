import { expect, test } from 'vitest'
import { ask, call, type Event, finish, open, server } from './foreign-server.js'
import { failOnUnhandledRejections } from './open-chat.js'

failOnUnhandledRejections()

// What a second round of strangers found: the model's provider repeats call ids, and every approval request has an id of its own.

const result = (toolCallId: string, content: string, outcome?: string): Event => ({
  type: 'TOOL_CALL_RESULT',
  messageId: `r-${content}`,
  toolCallId,
  role: 'tool',
  content,
  ...(outcome !== undefined && { metadata: { countersign: { outcome } } }),
})

const asked = (n: number): Event[] => [...call('call_0', n), ask('call_0', `int-${n}`, n)]

test.each([undefined, true, false])(
  'K a result belongs to the call whose answer the run carries, not to a later call with that id (answered meanwhile: %s)',
  async (approved) => {
    const { connection, resume } = server(
      (input) => [...asked(1), finish(input, ['int-1', 'call_0'])],
      () => ['cut'],
      (input) => [...asked(2), finish(input, ['int-2', 'call_0'])],
      (input) => [result('call_0', 'done 1'), finish(input)],
    )
    const { client, pending, calls } = open({ connection })
    await client.sendMessage('go')
    await client.addToolApprovalResponse({ id: 'int-1', approved: true })
    await client.sendMessage('something else')
    const retried = client.retry()
    const answer =
      approved === undefined ? undefined : client.addToolApprovalResponse({ id: 'int-2', approved })
    await retried
    expect(calls()[0]).toMatchObject({
      state: 'complete',
      output: 'done 1',
      approval: { delivery: 'settled' },
    })
    expect(calls()[1]?.output).toBe(undefined)
    if (approved === undefined) expect(pending()).toEqual([['int-2', 'call_0', { n: 2 }]])
    else expect(await answer).toEqual({ status: 'sent' })
    expect(resume().slice(4)).toEqual(approved === undefined ? [] : [[['int-2', { approved }]]])
  },
)

test('K if one request carries answers for several calls with one id, their results come in the order of the answers', async () => {
  const { connection, resume } = server(
    (input) => [...asked(1), finish(input, ['int-1', 'call_0'])],
    () => ['cut'],
    (input) => [...asked(2), finish(input, ['int-2', 'call_0'])],
    () => ['cut'],
    (input) => [result('call_0', 'done 1'), result('call_0', '{"reason":"no"}', 'denied'), finish(input)],
  )
  const { client, calls } = open({ connection })
  await client.sendMessage('go')
  await client.addToolApprovalResponse({ id: 'int-1', approved: true })
  await client.sendMessage('something else')
  await client.addToolApprovalResponse({ id: 'int-2', approved: false })
  await client.retry()
  expect(resume()[4]?.map(([id]) => id)).toEqual(['int-1', 'int-2'])
  expect(calls()).toMatchObject([{ state: 'complete', output: 'done 1' }, { state: 'denied' }])
})

test('K a result is not that of an answer which is only in the history, if the run was sent another answer or ran another call', async () => {
  const { connection, resume } = server(
    (input) => [...asked(1), finish(input, ['int-1', 'call_0'])],
    () => ['cut'],
    (input) => [
      ...call('call_0', 5),
      result('call_0', 'done 5'),
      ...asked(2),
      finish(input, ['int-2', 'call_0']),
    ],
    (input) => [result('call_0', 'done 2'), finish(input)],
    (input) => [result('call_0', 'done 1'), finish(input)],
  )
  const { client, calls } = open({ connection })
  await client.sendMessage('go')
  await client.addToolApprovalResponse({ id: 'int-1', approved: true })
  await client.sendMessage('something else')
  await client.addToolApprovalResponse({ id: 'int-2', approved: true })
  await client.retry()
  expect(resume().map((entries) => entries.map(([id]) => id))).toEqual([
    [],
    ['int-1'],
    [],
    ['int-2'],
    ['int-1'],
  ])
  expect(calls().map(({ input, output }) => [input, output])).toEqual([
    [{ n: 1 }, 'done 1'],
    [{ n: 5 }, 'done 5'],
    [{ n: 2 }, 'done 2'],
  ])
})

test('K a second result with the id of an answered call does not end an open request', async () => {
  const { connection } = server(
    (input) => [...asked(1), finish(input, ['int-1', 'call_0'])],
    () => ['cut'],
    (input) => [...asked(2), finish(input, ['int-2', 'call_0'])],
    (input) => [result('call_0', 'done 1'), result('call_0', 'done again'), finish(input)],
  )
  const { client, pending, warnings } = open({ connection })
  await client.sendMessage('go')
  await client.addToolApprovalResponse({ id: 'int-1', approved: true })
  await client.sendMessage('something else')
  await client.retry()
  expect(pending()).toEqual([['int-2', 'call_0', { n: 2 }]])
  expect(warnings).not.toEqual([])
})

test.each([true, false])(
  'K an answer (%s) that was not sent before the server ran its call is `closed`, and the call shows its output',
  async (approved) => {
    let proceed = () => {}
    const until = new Promise<void>((resolve) => {
      proceed = resolve
    })
    const { connection, resume } = server(async function* (input) {
      yield* [...call('c1', 1), ask('c1', 'a1', 1)]
      await until
      yield* [result('c1', 'it ran'), finish(input)]
    })
    const { client, pending, calls } = open({ connection })
    const sent = client.sendMessage('go')
    await expect.poll(pending).toHaveLength(1)
    const answer = client.addToolApprovalResponse({ id: 'a1', approved })
    proceed()
    await sent
    expect(await answer).toEqual({ status: 'closed', reason: 'complete' })
    expect(calls()).toMatchObject([
      { state: 'complete', output: 'it ran', approval: { approved, problem: 'approval-conflict' } },
    ])
    expect(resume()).toEqual([[]])
  },
)
