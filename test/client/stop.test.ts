import {
  action,
  call,
  cut,
  gated,
  hold,
  resolve,
  text,
  textDelta,
  textEnd,
  textStart,
  until,
} from '@countersign/testing'
import { describe, expect, test, vi } from 'vitest'
import {
  answersOf,
  callOf,
  failOnUnhandledRejections,
  flags,
  idle,
  openChat,
  saidBy,
  stateOf,
  wires,
} from './open-chat.js'

failOnUnhandledRejections()

const approve = (id: string) => ({ id, approved: true })

describe.each(wires)('%s', (wire) => {
  test('after stop the status is ready at once, the stream is closed, and a send in the same tick works', async () => {
    const { client, person, server } = await openChat(wire, [
      [textStart(), textDelta('Once upon'), hold()],
      [text('Hello.')],
    ])
    const first = person.sendMessage('tell me a story')
    await until(client, () => saidBy(client) === 'Once upon')
    person.stop()
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', isLoading: false, error: undefined })
    const second = person.sendMessage('no, just say hello')
    expect(await first).toEqual({ status: 'stopped' })
    expect(await second).toEqual({ status: 'sent' })
    expect(await server.request(1).then((run) => run.closed)).toBe('aborted')
    expect(saidBy(client)).toBe('Once upon Hello.')
    expect(client.inspect().generation).toBe(1)
  })

  test('stop before anything has arrived leaves the message and nothing else', async () => {
    const onError = vi.fn()
    const { client, person } = await openChat(wire, [[hold()]], { onError })
    const sent = person.sendMessage('go')
    person.stop()
    expect(await sent).toEqual({ status: 'stopped' })
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
    expect(saidBy(client, 'user')).toBe('go')
    expect(onError).not.toHaveBeenCalled()
  })

  test('S4.66 stop during a continuation resets the flags, keeps what is pending, and a later answer works', async () => {
    const { client, person, server, settle } = await openChat(wire, [
      gated('A'),
      [resolve(), ...gated('B'), hold()],
      [resolve(), text('Done.')],
    ])
    await person.sendMessage('go')
    const first = person.addToolApprovalResponse(approve('aA'))
    await until(client, ({ pendingApprovals }) => pendingApprovals.length === 1)
    person.stop()
    expect(flags(client)).toEqual(idle)
    expect(client.getSnapshot()).toMatchObject({ status: 'awaiting-approval', isLoading: false })
    expect(stateOf(client, 'cB')).toBe('approval-requested')
    await first
    await settle()
    expect(server.requests).toHaveLength(2)
    expect(await person.addToolApprovalResponse(approve('aB'))).toEqual({ status: 'sent' })
    expect(answersOf(server)).toEqual([[], ['aA yes'], ['aB yes']])
  })

  test('an answer given before stop is not sent by itself; it is sent with the next request', async () => {
    const { client, person, server, settle } = await openChat(wire, [
      [...gated(1), hold()],
      [resolve(), text('Done.')],
    ])
    void person.sendMessage('go')
    await until(client, ({ pendingApprovals }) => pendingApprovals.length === 1)
    const answered = person.addToolApprovalResponse(approve('a1'))
    person.stop()
    expect(await answered).toEqual({ status: 'waiting' })
    await settle()
    expect(server.requests).toHaveLength(1)
    expect(callOf(client, 'c1')).toMatchObject({
      state: 'approval-responded',
      approval: { delivery: 'waiting' },
    })
    await person.sendMessage('and now?')
    expect(answersOf(server)).toEqual([[], ['a1 yes']])
  })

  test('a call whose arguments were cut off by stop is cancelled, and says why', async () => {
    const { client, person } = await openChat(wire, [
      [
        { step: 'call-start', id: 'c1', name: 'write' },
        { step: 'call-args', id: 'c1', delta: '{"a":' },
        hold(),
      ],
    ])
    void person.sendMessage('go')
    await until(client, () => stateOf(client, 'c1') === 'input-streaming')
    person.stop()
    expect(callOf(client, 'c1')).toMatchObject({
      state: 'cancelled',
      error: { code: 'incomplete-arguments' },
    })
  })

  test('stop keeps the queue but does not send it; the next action of the user does', async () => {
    const { client, person, server, settle } = await openChat(wire, [[hold()], [text('1')], [text('2')]])
    void person.sendMessage('first')
    await server.held()
    expect(await person.sendMessage('second')).toMatchObject({ status: 'queued' })
    person.stop()
    await settle()
    expect(client.getSnapshot().queue.map(({ message }) => message.parts)).toEqual([
      [{ type: 'text', text: 'second' }],
    ])
    expect(server.requests).toHaveLength(1)
    await person.sendMessage('third')
    await until(client, ({ queue, isLoading }) => queue.length === 0 && !isLoading)
    expect(saidBy(client, 'user')).toBe('first second third')
    expect(server.requests).toHaveLength(3)
  })

  test('retry resolves when the reply to a message has ended that stop had held', async () => {
    const { client, person, server, settle } = await openChat(wire, [
      [hold()],
      [text('1'), hold('end'), text('2')],
    ])
    void person.sendMessage('first')
    await server.held()
    await person.sendMessage('second')
    person.stop()
    let isOver = false
    const retried = person.retry().then(() => {
      isOver = true
    })
    await until(client, () => saidBy(client) === '1')
    await settle()
    expect(isOver).toBe(false)
    server.release('end')
    await retried
    expect(client.getSnapshot().isLoading).toBe(false)
    expect(saidBy(client)).toBe('12')
  })

  test('S4.68 clear while something is pending drops it, the queue and the flags', async () => {
    const { client, person, server, settle } = await openChat(wire, [[...gated(1), hold()], [text('Fresh.')]])
    void person.sendMessage('go')
    await until(client, ({ pendingApprovals }) => pendingApprovals.length === 1)
    void person.sendMessage('later')
    const answered = person.addToolApprovalResponse(approve('a1'))
    person.clear()
    expect(client.getSnapshot()).toMatchObject({
      messages: [],
      queue: [],
      pendingApprovals: [],
      status: 'ready',
      isLoading: false,
    })
    expect(flags(client)).toEqual(idle)
    expect(await answered).toMatchObject({ status: expect.stringMatching(/^(waiting|closed)$/) })
    await settle()
    expect(server.requests).toHaveLength(1)
    expect(await person.addToolApprovalResponse(approve('a1'))).toEqual({ status: 'not-found' })
    await person.sendMessage('new')
    expect(server.requests[1]).toMatchObject({ messages: [{ role: 'user', content: 'new' }] })
    expect(answersOf(server)[1]).toEqual([])
  })

  test('S4.68 setMessages while a run is open voids it: nothing late is applied to the new conversation', async () => {
    const { client, person, server, settle } = await openChat(wire, [
      [textStart(), textDelta('one'), hold(), textDelta(' two'), textEnd()],
    ])
    void person.sendMessage('go')
    await until(client, () => saidBy(client) === 'one')
    const { messages } = client.getSnapshot()
    const kept = messages.slice(0, 1)
    person.setMessages(kept)
    server.release()
    await settle()
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', messages: kept })
    expect(server.requests).toHaveLength(1)
  })

  test('S4.69 detaching ends nothing: the run goes on and can be read afterwards', async () => {
    const { client, person, server } = await openChat(wire, [[hold(), text('Still here.')]])
    const heard = vi.fn()
    const leave = client.subscribe(heard)
    const detach = client.attach()
    const sent = person.sendMessage('go')
    await server.held()
    leave()
    detach()
    heard.mockClear()
    server.release()
    expect(await sent).toEqual({ status: 'sent' })
    expect(heard).not.toHaveBeenCalled()
    expect(saidBy(client)).toBe('Still here.')
  })

  test('S4.69 dispose ends the run for good: nothing late is applied and nothing more is taken', async () => {
    const { client, person, server, settle } = await openChat(wire, [
      [textStart(), textDelta('one'), hold(), textDelta(' two')],
    ])
    const sent = person.sendMessage('go')
    await until(client, () => saidBy(client) === 'one')
    client.dispose()
    const after = client.getSnapshot()
    server.release()
    expect(await sent).toEqual({ status: 'stopped' })
    await settle()
    expect(client.getSnapshot()).toBe(after)
    expect(after.status).toBe('ready')
    expect(await person.sendMessage('more')).toMatchObject({ status: 'refused', error: { code: 'disposed' } })
    expect(await person.regenerate()).toMatchObject({ status: 'refused', error: { code: 'disposed' } })
    await person.retry()
    await person.retry()
    await settle()
    expect(server.requests).toHaveLength(1)
  })

  test('a pending request cannot be answered after dispose, and nothing is sent', async () => {
    const { client, person, server, settle } = await openChat(wire, [gated(1)])
    await person.sendMessage('go')
    client.dispose()
    expect(await person.addToolApprovalResponse(approve('a1'))).toMatchObject({ status: 'closed' })
    await settle()
    expect(server.requests).toHaveLength(1)
  })

  test('retry does nothing where nothing failed, and repeats the failed request where something did', async () => {
    const { client, person, server } = await openChat(wire, [[text('Hello.')], [cut()], [text('Again.')]])
    await person.retry()
    expect(server.requests).toHaveLength(0)
    await person.sendMessage('hi')
    await person.retry()
    expect(server.requests).toHaveLength(1)
    expect(await person.sendMessage('there?')).toMatchObject({
      status: 'failed',
      error: { code: 'connection-failed' },
    })
    await person.retry()
    expect(server.requests).toHaveLength(3)
    expect(server.requests[2]?.messages).toEqual(server.requests[1]?.messages)
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
    await person.retry()
    expect(server.requests).toHaveLength(3)
  })

  test('regenerate drops the last answer and asks for it again', async () => {
    const { client, person, server } = await openChat(wire, [[text('One.')], [text('Two.')]])
    await person.sendMessage('hi')
    expect(await person.regenerate()).toEqual({ status: 'sent' })
    expect(saidBy(client)).toBe('Two.')
    expect(server.requests[1]?.messages).toEqual(server.requests[0]?.messages)
  })

  test('regenerate with the id of an earlier answer goes back to the message that it answers', async () => {
    const { client, person, server } = await openChat(wire, [
      [text('One.')],
      [text('Two.')],
      [text('Other.')],
    ])
    await person.sendMessage('first')
    await person.sendMessage('second')
    const answer = client.getSnapshot().messages[1]
    await person.regenerate(answer ? { messageId: answer.id } : {})
    expect(saidBy(client, 'user')).toBe('first')
    expect(saidBy(client)).toBe('Other.')
    expect(server.requests[2]?.messages).toEqual(server.requests[0]?.messages)
  })

  test('regenerate while a run is open ends it and asks again', async () => {
    const { client, person, server } = await openChat(wire, [
      [textStart(), textDelta('Once'), hold()],
      [text('Hello.')],
    ])
    void person.sendMessage('hi')
    await until(client, () => saidBy(client) === 'Once')
    expect(await person.regenerate()).toEqual({ status: 'sent' })
    expect(saidBy(client)).toBe('Hello.')
    expect(server.requests).toHaveLength(2)
  })

  test('regenerate with nothing said or an unknown id is refused', async () => {
    const { person, server } = await openChat(wire, [[text('One.')]])
    expect(await person.regenerate()).toMatchObject({
      status: 'refused',
      error: { code: 'invalid-argument' },
    })
    await person.sendMessage('hi')
    expect(await person.regenerate({ messageId: 'nothing' })).toMatchObject({ status: 'refused' })
    expect(server.requests).toHaveLength(1)
  })
})

test('a transport that goes on after stop changes nothing any more', async () => {
  const { client, person, server, settle } = await openChat(
    'in-process',
    [[textStart(), textDelta('one'), hold(), textDelta(' two'), textEnd(), ...gated(1)], [text('New.')]],
    { deaf: true },
  )
  void person.sendMessage('go')
  await until(client, () => saidBy(client) === 'one')
  person.stop()
  const stopped = client.getSnapshot()
  server.release()
  await settle()
  expect(client.getSnapshot()).toBe(stopped)
  await person.sendMessage('again')
  expect(saidBy(client)).toBe('one New.')
})

test('late events of a stopped run do not mix into the run that follows at once', async () => {
  const { client, person, server, settle } = await openChat(
    'in-process',
    [
      [textStart(), textDelta('one'), hold('late'), textDelta(' late'), textEnd()],
      [text('New'), hold('second'), text('est.')],
    ],
    { deaf: true },
  )
  void person.sendMessage('go')
  await until(client, () => saidBy(client) === 'one')
  person.stop()
  const second = person.sendMessage('again')
  await server.held('second')
  server.release('late')
  await settle()
  server.release('second')
  expect(await second).toEqual({ status: 'sent' })
  expect(saidBy(client)).toBe('one Newest.')
})

test('stop inside the callback that announces a request keeps the request and sends nothing', async () => {
  const { client, person, server, settle } = await openChat(
    'in-process',
    [[...gated(1), call('c2', 'list')]],
    {
      onApprovalRequest: () => person.stop(),
    },
  )
  await person.sendMessage('go')
  await settle()
  expect(client.getSnapshot().status).toBe('awaiting-approval')
  expect(stateOf(client, 'c2')).toBeUndefined()
  expect(server.requests).toHaveLength(1)
})

test('stop, send and stop again in one tick leave one closed stream each and a ready chat', async () => {
  const { client, person, server, settle } = await openChat('in-process', [
    [hold()],
    [hold()],
    [text('Hello.')],
  ])
  const sent = [person.sendMessage('1')]
  person.stop()
  sent.push(person.sendMessage('2'))
  person.stop()
  await Promise.all(sent)
  await settle()
  expect(client.getSnapshot().status).toBe('ready')
  expect(server.openStreams).toBe(0)
  await person.sendMessage('3')
  expect(saidBy(client, 'user')).toBe('1 2 3')
  expect(saidBy(client)).toBe('Hello.')
})

test('a stop from inside the stream, at every moment of it, leaves one of two states and never an error', async () => {
  for (let moment = 0; moment < 8; moment++) {
    const steps = [text('a'), ...gated(1), text('b'), ...gated(2)]
    const { client, person, settle } = await openChat('in-process', [
      [...steps.slice(0, moment), action('stop', () => person.stop()), ...steps.slice(moment)],
    ])
    await person.sendMessage('go')
    await settle()
    const { status, pendingApprovals, error } = client.getSnapshot()
    expect(error).toBeUndefined()
    expect(status).toBe(pendingApprovals.length > 0 ? 'awaiting-approval' : 'ready')
  }
})
