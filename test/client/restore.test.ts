import { ChatClient, type UIMessage } from '@countersign/client'
import {
  cut,
  gated,
  resolve,
  scriptedConnection,
  text,
  textDelta,
  textStart,
  until,
} from '@countersign/testing'
import { describe, expect, test, vi } from 'vitest'
import {
  answersOf,
  callOf,
  failOnUnhandledRejections,
  openChat,
  saidBy,
  stateOf,
  wires,
} from './open-chat.js'

failOnUnhandledRejections()

const approve = (id: string) => ({ id, approved: true })

/** The messages as a page would have kept them: by way of JSON. */
const kept = (client: ChatClient): UIMessage[] => JSON.parse(JSON.stringify(client.getSnapshot().messages))

async function afterAsking(): Promise<UIMessage[]> {
  const { client, person } = await openChat('in-process', [[text('Two files.'), gated(1), gated(2)]])
  await person.sendMessage('tidy up')
  return kept(client)
}

describe.each(wires)('%s', (wire) => {
  test('U.14 a pending request that was restored is shown, sends nothing, and answering it continues', async () => {
    const initialMessages = await afterAsking()
    const { client, person, server, settle } = await openChat(wire, [[resolve(), text('Done.')]], {
      initialMessages,
    })
    client.attach()
    await settle()
    expect(server.requests).toHaveLength(0)
    expect(client.getSnapshot()).toMatchObject({ status: 'awaiting-approval', messages: initialMessages })
    expect(client.getSnapshot().pendingApprovals.map(({ approval }) => approval?.id)).toEqual(['a1', 'a2'])
    expect(await person.addToolApprovalResponse(approve('a1'))).toEqual({ status: 'waiting' })
    expect(await person.addToolApprovalResponse({ id: 'a2', approved: false })).toEqual({ status: 'sent' })
    expect(answersOf(server)).toEqual([['a1 yes', 'a2 no']])
    expect(server.requests[0]?.resume?.[0]?.metadata).toEqual({
      countersign: { token: 'token-a1', sentIn: server.requests[0]?.runId },
    })
    expect(server.requests[0]?.messages[0]).toMatchObject({ role: 'user', content: 'tidy up' })
    expect(saidBy(client)).toBe('Two files. Done.')
  })

  test('U.14 the same conversation, set instead of given, behaves the same', async () => {
    const { client, person, server } = await openChat(wire, [[resolve(), text('Done.')]])
    person.setMessages(await afterAsking())
    expect(client.getSnapshot().status).toBe('awaiting-approval')
    void person.addToolApprovalResponse(approve('a1'))
    expect(await person.addToolApprovalResponse(approve('a2'))).toEqual({ status: 'sent' })
    expect(answersOf(server)).toEqual([['a1 yes', 'a2 yes']])
  })

  test('an answer that was given but not sent before the reload is sent by retry, and by nothing else of itself', async () => {
    const first = await openChat('in-process', [gated(1), [cut()]])
    await first.person.sendMessage('go')
    await first.person.addToolApprovalResponse(approve('a1'))
    const initialMessages = kept(first.client)
    const { client, person, server, settle } = await openChat(wire, [[resolve(), text('Done.')]], {
      initialMessages,
    })
    client.attach()
    await settle()
    expect(server.requests).toHaveLength(0)
    expect(callOf(client, 'c1')).toMatchObject({
      state: 'approval-responded',
      approval: { approved: true, delivery: 'waiting' },
    })
    await person.retry()
    expect(answersOf(server)).toEqual([['a1 yes']])
    expect(stateOf(client, 'c1')).toBe('complete')
    await person.retry()
    expect(server.requests).toHaveLength(1)
  })

  test('an answer of unknown delivery is sent again by retry, unchanged', async () => {
    const first = await openChat('in-process', [gated(1), [textStart(), textDelta('I am'), cut()]])
    await first.person.sendMessage('go')
    await first.person.addToolApprovalResponse({ ...approve('a1'), reason: 'yes' })
    expect(callOf(first.client, 'c1').approval?.delivery).toBe('unknown')
    const { person, server } = await openChat(wire, [[resolve(), text('Done.')]], {
      initialMessages: kept(first.client),
    })
    await person.retry()
    const [sent] = first.server.requests[1]?.resume ?? []
    // These messages may be a copy on another device: the answer is the same, and given by this page.
    const metadata = { countersign: { token: 'token-a1', sentIn: server.requests[0]?.runId } }
    expect(server.requests[0]?.resume).toEqual([{ ...sent, metadata }])
  })

  test('a restored request does not accept a second answer', async () => {
    const first = await openChat('in-process', [gated(1), [resolve(), text('Done.')]])
    await first.person.sendMessage('go')
    await first.person.addToolApprovalResponse(approve('a1'))
    const { person, server, settle } = await openChat(wire, [], { initialMessages: kept(first.client) })
    expect(await person.addToolApprovalResponse({ id: 'a1', approved: false })).toEqual({
      status: 'already-answered',
    })
    await person.retry()
    await settle()
    expect(server.requests).toHaveLength(0)
  })

  test('U.15 E.16 regenerate drops the requests and answers that lived in the removed part', async () => {
    const { client, person, server, settle } = await openChat(wire, [
      [gated(1), gated(2)],
      [text('Another way.')],
    ])
    await person.sendMessage('go')
    const answered = person.addToolApprovalResponse(approve('a1'))
    expect(await answered).toEqual({ status: 'waiting' })
    await person.regenerate()
    await settle()
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', pendingApprovals: [] })
    // Nobody answers them any more, which the server hears (F33).
    expect(answersOf(server)).toEqual([[], ['a1 cancelled', 'a2 cancelled']])
    expect(server.requests[1]?.messages).toEqual(server.requests[0]?.messages)
    expect(await person.addToolApprovalResponse(approve('a2'))).toEqual({ status: 'not-found' })
    expect(saidBy(client)).toBe('Another way.')
  })

  test('U.15 after an earlier message was edited with setMessages nothing of the removed part is sent', async () => {
    const { client, person, server } = await openChat(wire, [
      [text('Hello.')],
      [gated(1), gated(2)],
      [text('Fine.')],
    ])
    await person.sendMessage('hi')
    await person.sendMessage('go')
    await person.addToolApprovalResponse(approve('a1'))
    person.setMessages(client.getSnapshot().messages.slice(0, 2))
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', pendingApprovals: [] })
    await person.sendMessage('something else')
    expect(answersOf(server)).toEqual([[], [], []])
    expect(server.requests[2]?.messages).toHaveLength(3)
  })

  test('U.16 an answer in one thread never affects another, with equal tool names, call ids and approval ids', async () => {
    const one = await openChat(wire, [gated(1), [resolve(), text('One.')]], { threadId: 'one' })
    const two = await openChat(wire, [gated(1)], { threadId: 'two' })
    await Promise.all([one.person.sendMessage('go'), two.person.sendMessage('go')])
    const before = two.client.getSnapshot()
    await one.person.addToolApprovalResponse(approve('a1'))
    await two.settle()
    expect(two.client.getSnapshot()).toBe(before)
    expect(two.server.requests).toHaveLength(1)
    expect(one.server.requests.map(({ threadId }) => threadId)).toEqual(['one', 'one'])
    expect(stateOf(one.client, 'c1')).toBe('complete')
  })
})

test('restored messages with a finished conversation send nothing and are ready', async () => {
  const connect = vi.fn()
  const first = await openChat('in-process', [gated(1), [resolve(), text('Done.')]])
  await first.person.sendMessage('go')
  await first.person.addToolApprovalResponse(approve('a1'))
  const client = new ChatClient({ connection: { connect }, initialMessages: kept(first.client) })
  expect(client.getSnapshot()).toMatchObject({
    status: 'ready',
    messages: first.client.getSnapshot().messages,
  })
  await client.retry()
  await client.retry()
  expect(connect).not.toHaveBeenCalled()
})

test('a client tool that ran before the reload does not run again, and one that had not is left to the server', async () => {
  const server = scriptedConnection([[text('Hello again.')]])
  const client = new ChatClient({
    connection: server,
    initialMessages: [
      { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'go' }] },
      {
        id: 'm1',
        role: 'assistant',
        parts: [
          { type: 'tool-call', id: 'c1', name: 'locate', arguments: '{}', input: {}, state: 'executing' },
        ],
      },
    ],
  })
  await client.sendMessage('and?')
  await until(client, ({ isLoading }) => !isLoading)
  expect(client.getSnapshot().status).toBe('ready')
  expect(server.requests).toHaveLength(1)
})
