import {
  ask,
  call,
  cut,
  finish,
  gated,
  hold,
  refuse,
  resolve,
  scriptedConnection,
  text,
  until,
} from '@countersign/testing'
import { describe, expect, test } from 'vitest'
import {
  answersOf,
  callOf,
  failOnUnhandledRejections,
  openChat,
  openClient,
  saidBy,
  stateOf,
  wires,
} from './open-chat.js'

failOnUnhandledRejections()

const approve = (id: string) => ({ id, approved: true })

const usersOf = (messages: readonly { role: string; content?: unknown }[] | undefined) =>
  messages?.filter(({ role }) => role === 'user').map(({ content }) => content)

describe.each(wires)('%s', (wire) => {
  test('S2.63 S4.70 E.3 with cancel, the default, speaking on cancels what is pending and tells the server in the same request', async () => {
    const { client, person, server } = await openChat(wire, [
      [gated(1), gated(2)],
      [resolve(), text('As you like.')],
    ])
    await person.sendMessage('go')
    await person.addToolApprovalResponse(approve('a1'))
    const sent = person.sendMessage('something else')
    expect(stateOf(client, 'c2')).toBe('cancelled')
    expect(callOf(client, 'c2').approval?.approved).toBeUndefined()
    expect(client.getSnapshot()).toMatchObject({ status: 'submitted', pendingApprovals: [] })
    expect(await sent).toEqual({ status: 'sent' })
    expect(answersOf(server)[1]?.toSorted()).toEqual(['a1 yes', 'a2 cancelled'])
    expect(server.requests[1]?.resume?.find(({ status }) => status === 'cancelled')).toEqual({
      interruptId: 'a2',
      status: 'cancelled',
      metadata: { countersign: { token: 'token-a2' } },
    })
    expect(usersOf(server.requests[1]?.messages)).toEqual(['go', 'something else'])
    expect(server.requests).toHaveLength(2)
    expect(saidBy(client)).toBe('As you like.')
  })

  test('S2.64 an answer after such a cancellation is closed: nothing changes and nothing is sent', async () => {
    const { client, person, server, settle } = await openChat(wire, [
      gated(1),
      [resolve(), text('As you like.')],
    ])
    await person.sendMessage('go')
    await person.sendMessage('something else')
    const before = client.getSnapshot()
    expect(await person.addToolApprovalResponse(approve('a1'))).toEqual({
      status: 'closed',
      reason: 'cancelled',
    })
    await settle()
    expect(client.getSnapshot()).toBe(before)
    expect(server.requests).toHaveLength(2)
  })

  test('S4.70 with queue the message is held until the requests are answered, and answers are sent first', async () => {
    const { client, person, server, settle } = await openChat(
      wire,
      [gated(1), [resolve(), text('Deleted.')], [text('And hello.')]],
      { onPendingMessage: 'queue' },
    )
    await person.sendMessage('go')
    const queued = await person.sendMessage('hello?')
    expect(queued).toMatchObject({ status: 'queued' })
    expect(client.getSnapshot().queue).toHaveLength(1)
    expect(stateOf(client, 'c1')).toBe('approval-requested')
    await settle()
    expect(server.requests).toHaveLength(1)
    await person.addToolApprovalResponse(approve('a1'))
    await server.request(3)
    await until(client, ({ isLoading }) => !isLoading)
    expect(answersOf(server)).toEqual([[], ['a1 yes'], []])
    expect(server.requests.map(({ messages }) => usersOf(messages))).toEqual([
      ['go'],
      ['go'],
      ['go', 'hello?'],
    ])
    expect(client.getSnapshot().queue).toEqual([])
  })

  test("S4.70 with reject the message is refused, the request stays open and the text is still the caller's", async () => {
    const { client, person, server, settle } = await openChat(wire, [gated(1), [resolve()]], {
      onPendingMessage: 'reject',
    })
    await person.sendMessage('go')
    const before = client.getSnapshot()
    expect(await person.sendMessage('hello?')).toMatchObject({
      status: 'refused',
      error: { code: 'pending-approvals' },
    })
    await settle()
    expect(client.getSnapshot()).toBe(before)
    expect(server.requests).toHaveLength(1)
    expect(await person.addToolApprovalResponse(approve('a1'))).toEqual({ status: 'sent' })
  })

  test('while a run is open messages are queued and are sent one by one, in order', async () => {
    const { client, person, server } = await openChat(wire, [[hold(), text('1')], [text('2')], [text('3')]])
    const sent = ['a', 'b', 'c'].map((words) => person.sendMessage(words))
    expect(client.getSnapshot().queue.map(({ message }) => message.parts)).toEqual([
      [{ type: 'text', text: 'b' }],
      [{ type: 'text', text: 'c' }],
    ])
    server.release()
    await Promise.all(sent)
    await until(client, ({ queue, isLoading }) => queue.length === 0 && !isLoading)
    expect(server.requests.map(({ messages }) => usersOf(messages))).toEqual([
      ['a'],
      ['a', 'b'],
      ['a', 'b', 'c'],
    ])
    expect(server.mostStreams).toBe(1)
  })

  test('a queued message can be taken back, once', async () => {
    const { client, person, server, settle } = await openChat(wire, [[hold(), text('1')]])
    const first = person.sendMessage('a')
    const queued = person.sendMessage('b')
    const [item] = client.getSnapshot().queue
    expect(person.cancelQueued(item?.id ?? '')).toBe(true)
    expect(person.cancelQueued(item?.id ?? '')).toBe(false)
    expect(client.getSnapshot().queue).toEqual([])
    server.release()
    await Promise.all([first, queued])
    await settle()
    expect(server.requests).toHaveLength(1)
    expect(saidBy(client, 'user')).toBe('a')
  })

  test('a queued message cancels only the requests that were visible when it was written', async () => {
    const { client, person, server } = await openChat(wire, [
      [...gated(1), hold('asked'), hold('end')],
      [resolve(), text('As you like.')],
    ])
    void person.sendMessage('go')
    await until(client, ({ pendingApprovals }) => pendingApprovals.length === 1)
    const queued = person.sendMessage('forget it')
    expect(stateOf(client, 'c1')).toBe('approval-requested')
    server.release('asked')
    server.release('end')
    await queued
    await until(client, ({ queue, isLoading }) => queue.length === 0 && !isLoading)
    expect(stateOf(client, 'c1')).toBe('cancelled')
    expect(answersOf(server)).toEqual([[], ['a1 cancelled']])
  })

  test('for a request that came after it was written a queued message waits until it is answered', async () => {
    const { client, person, server, settle } = await openChat(wire, [
      [hold(), ...gated(1)],
      [resolve(), text('Deleted.')],
      [text('Hello.')],
    ])
    void person.sendMessage('go')
    await server.held()
    void person.sendMessage('hello?')
    server.release()
    await until(client, ({ status }) => status === 'awaiting-approval')
    await settle()
    expect(server.requests).toHaveLength(1)
    expect(client.getSnapshot().queue).toHaveLength(1)
    await person.addToolApprovalResponse(approve('a1'))
    await until(client, ({ queue, isLoading }) => queue.length === 0 && !isLoading)
    expect(answersOf(server)).toEqual([[], ['a1 yes'], []])
    expect(server.requests.map(({ messages }) => usersOf(messages))).toEqual([
      ['go'],
      ['go'],
      ['go', 'hello?'],
    ])
  })

  test('for a request that came after it was written a queued message waits until the user speaks again', async () => {
    const { client, person, server, settle } = await openChat(wire, [
      [hold(), ...gated(1)],
      [resolve(), text('As you like.')],
      [text('Hello.')],
    ])
    void person.sendMessage('go')
    await server.held()
    void person.sendMessage('hello?')
    server.release()
    await until(client, ({ status }) => status === 'awaiting-approval')
    await settle()
    void person.sendMessage('are you there?')
    expect(stateOf(client, 'c1')).toBe('cancelled')
    await server.request(3)
    await until(client, ({ queue, isLoading }) => queue.length === 0 && !isLoading)
    expect(answersOf(server)).toEqual([[], ['a1 cancelled'], []])
    expect(usersOf(server.requests[2]?.messages)).toEqual(['go', 'hello?', 'are you there?'])
  })

  test('an expired request that the server refused does not hold up the conversation', async () => {
    const { client, person, server } = await openChat(wire, [
      gated(1),
      [refuse('a1', 'approval-stale')],
      [text('Hello.')],
    ])
    await person.sendMessage('go')
    await person.addToolApprovalResponse(approve('a1'))
    expect(await person.sendMessage('hello?')).toEqual({ status: 'sent' })
    expect(answersOf(server)).toEqual([[], ['a1 yes'], []])
    expect(saidBy(client)).toBe('Hello.')
  })

  test('a cancellation that did not arrive is sent again with the next request', async () => {
    const { person, server } = await openChat(wire, [gated(1), [cut()], [resolve(), text('Hello.')]])
    await person.sendMessage('go')
    expect(await person.sendMessage('never mind')).toMatchObject({ status: 'failed' })
    await person.retry()
    expect(answersOf(server)).toEqual([[], ['a1 cancelled'], ['a1 cancelled']])
    expect(usersOf(server.requests[2]?.messages)).toEqual(['go', 'never mind'])
  })

  test('an interrupt that concerns no call is shown, answered or declined, and sent', async () => {
    const question = { id: 'q1', reason: 'input_required', message: 'Which folder?' }
    const { client, person, server } = await openChat(wire, [
      [text('One question.'), finish({ interrupts: [question, { id: 'q2', reason: 'confirmation' }] })],
      [text('Thanks.')],
    ])
    await person.sendMessage('go')
    expect(client.getSnapshot().interrupts.map(({ id }) => id)).toEqual(['q1', 'q2'])
    expect(await person.respondToInterrupt({ id: 'q1', payload: { folder: 'logs' } })).toEqual({
      status: 'waiting',
    })
    expect(await person.respondToInterrupt({ id: 'q1', payload: 1 })).toEqual({ status: 'already-answered' })
    expect(await person.respondToInterrupt({ id: 'nothing', cancel: true })).toEqual({ status: 'not-found' })
    expect(await person.respondToInterrupt({ id: 'q2', cancel: true })).toEqual({ status: 'sent' })
    expect(server.requests[1]?.resume).toEqual([
      { interruptId: 'q1', status: 'resolved', payload: { folder: 'logs' } },
      { interruptId: 'q2', status: 'cancelled' },
    ])
    expect(client.getSnapshot()).toMatchObject({ interrupts: [], status: 'ready' })
  })

  test('an approval and another question of one run are answered in one request', async () => {
    const { person, server } = await openChat(wire, [
      [call('c1', 'delete'), ask('a1', 'c1'), finish({ interrupts: [{ id: 'q1', reason: 'confirmation' }] })],
      [resolve(), text('Thanks.')],
    ])
    await person.sendMessage('go')
    expect(await person.addToolApprovalResponse(approve('a1'))).toEqual({ status: 'waiting' })
    expect(await person.respondToInterrupt({ id: 'q1', payload: { approved: true } })).toEqual({
      status: 'sent',
    })
    expect(answersOf(server)[1]).toEqual(['a1 yes', 'q1 yes'])
  })

  test('a message may have files and metadata; an empty one is refused', async () => {
    const { client, person, server } = await openChat(wire, [[text('Nice.')]])
    expect(await person.sendMessage('')).toMatchObject({
      status: 'refused',
      error: { code: 'invalid-argument' },
    })
    expect(await person.sendMessage({})).toMatchObject({ status: 'refused' })
    expect(server.requests).toHaveLength(0)
    const file = {
      type: 'file',
      media: 'image',
      source: { type: 'url', value: 'https://example.org/a.png' },
    } as const
    await person.sendMessage({ text: 'look', files: [file], metadata: { mood: 'good' } })
    expect(client.getSnapshot().messages[0]).toMatchObject({
      parts: [{ type: 'text', text: 'look' }, file],
      metadata: { mood: 'good' },
    })
    expect(server.requests[0]?.messages[0]).toMatchObject({
      content: [
        { type: 'text', text: 'look' },
        { type: 'image', source: { type: 'url', value: 'https://example.org/a.png' } },
      ],
    })
  })
})

describe('F32 what a user sends', () => {
  const file = { type: 'file', media: 'image', source: { type: 'url', value: 'https://x.example/a.png' } }
  const careless: readonly [string, unknown][] = [
    ['null', null],
    ['a number', 7],
    ['a function', () => 'hello'],
    ['an event', { type: 'click', target: {} }],
    ['a list', ['hello']],
    ['nothing', ''],
    ['white space', ' \n\t\u00a0'],
    ['an object without text', {}],
    ['a text that is none', { text: 7 }],
    ['white space in an object', { text: '  ' }],
    ['files that are no list', { text: 'look', files: file }],
    ['a File', { text: 'look', files: [new File(['x'], 'a.txt')] }],
    ['a FileList', { text: 'look', files: { 0: new File(['x'], 'a.txt'), length: 1 } }],
    ['a part that is no file', { text: 'look', files: [{ type: 'text', text: 'no' }] }],
    ['a file without a source', { text: 'look', files: [{ type: 'file', media: 'image' }] }],
    ['metadata that is none', { text: 'look', metadata: 'x' }],
  ]
  for (const [what, input] of careless) {
    test(`F32 sendMessage(${what}) is refused and sends nothing`, async () => {
      const server = scriptedConnection([[text('hi')]])
      const client = openClient({ connection: server })
      const before = structuredClone(client.getSnapshot())
      const result = await client.sendMessage(input as string)
      expect(result).toMatchObject({ status: 'refused', error: { code: 'invalid-argument' } })
      expect([server.requests, client.getSnapshot()]).toEqual([[], before])
    })
  }

  test('F32 the refusal of a File names the way out', async () => {
    const client = openClient({ connection: scriptedConnection([]) })
    const files = [new File(['x'], 'a.txt')] as never
    const result = await client.sendMessage({ text: 'look', files })
    expect(result).toMatchObject({ error: { message: expect.stringContaining('source') } })
  })

  test('F32 files alone are sent, and white space beside them is left out', async () => {
    const server = scriptedConnection([[text('hi')]])
    const client = openClient({ connection: server })
    expect(await client.sendMessage({ text: ' ', files: [file as never] })).toEqual({ status: 'sent' })
    expect(client.getSnapshot().messages[0]?.parts).toEqual([file])
  })

  test('F32 a send that is stopped says so', async () => {
    const server = scriptedConnection([[text('hi'), hold()], [text('hi')], [hold()]])
    const client = openClient({ connection: server })
    const sent = client.sendMessage('one')
    await server.request(1)
    client.stop()
    expect(await sent).toEqual({ status: 'stopped' })
    await client.sendMessage('two')
    const again = client.regenerate()
    await server.request(3)
    client.clear()
    expect(await again).toEqual({ status: 'stopped' })
  })

  test('F32 what the application does with its objects afterwards changes no message', async () => {
    const client = openClient({ connection: scriptedConnection([[text('hi')]]) })
    const input = { text: 'look', files: [structuredClone(file)], metadata: { from: 'page' } }
    await client.sendMessage(input as never)
    const before = structuredClone(client.getSnapshot().messages)
    input.metadata.from = 'elsewhere'
    Object.assign(input.files[0] ?? {}, { media: 'video' })
    expect(client.getSnapshot().messages).toEqual(before)
  })
})
