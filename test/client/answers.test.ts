import {
  ask,
  byHand,
  call,
  cut,
  error,
  gated,
  hold,
  refuse,
  resolve,
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
  test('S4.48 an answer resolves when the continuation that it started has ended', async () => {
    const { person, server } = await openChat(wire, [gated(1), [resolve(), hold()]])
    await person.sendMessage('go')
    let told = false
    const answered = person.addToolApprovalResponse(approve('a1')).finally(() => {
      told = true
    })
    await server.held()
    expect(told).toBe(false)
    server.release()
    expect(await answered).toEqual({ status: 'sent' })
  })

  test('S4.49 S4.52 with no run open an answer continues at once: one request with the whole conversation', async () => {
    const { client, person, server } = await openChat(wire, [
      [text('Let me.'), ...gated(1)],
      [resolve(), text('Done.')],
    ])
    await person.sendMessage('go')
    const answered = person.addToolApprovalResponse({ ...approve('a1'), reason: 'fine' })
    expect(stateOf(client, 'c1')).toBe('approval-responded')
    expect(client.getSnapshot().isLoading).toBe(true)
    await answered
    expect(server.requests).toHaveLength(2)
    const [user, assistant] = server.requests[1]?.messages ?? []
    expect(user).toMatchObject({ role: 'user', content: 'go' })
    expect(assistant).toMatchObject({
      role: 'assistant',
      content: 'Let me.',
      toolCalls: [
        {
          id: 'c1',
          function: { name: 'delete_file', arguments: '{"path":"1.log"}' },
          metadata: { countersign: { approval: { id: 'a1', approved: true, reason: 'fine' } } },
        },
      ],
    })
    expect(answersOf(server)).toEqual([[], ['a1 yes (fine)']])
  })

  test('S4.50 S4.57 an answer during a stream changes the part at once and leaves one check for its end', async () => {
    const { client, person, server } = await openChat(wire, [
      [...gated(1), hold()],
      [resolve(), text('Done.')],
    ])
    void person.sendMessage('go')
    await until(client, () => stateOf(client, 'c1') === 'approval-requested')
    expect(client.getSnapshot()).toMatchObject({ status: 'streaming', isLoading: true })
    const answered = person.addToolApprovalResponse(approve('a1'))
    expect(callOf(client, 'c1')).toMatchObject({
      state: 'approval-responded',
      approval: { delivery: 'waiting' },
    })
    expect(flags(client)).toEqual({ continuationPending: false, continuationSkipped: true })
    expect(server.requests).toHaveLength(1)
    server.release()
    expect(await answered).toEqual({ status: 'sent' })
    expect(server.requests).toHaveLength(2)
  })

  test('S4.51 sending resolves when the stream pauses on a request, and nothing follows by itself', async () => {
    const { client, person, server, settle } = await openChat(wire, [gated(1)])
    expect(await person.sendMessage('go')).toEqual({ status: 'sent' })
    expect(client.getSnapshot()).toMatchObject({ status: 'awaiting-approval', isLoading: false })
    await settle()
    expect(server.requests).toHaveLength(1)
    expect(flags(client)).toEqual(idle)
  })

  test('S4.53 of two parallel requests the first answer waits, the second sends both', async () => {
    const { person, server, settle } = await openChat(wire, [
      [gated(1), gated(2)],
      [resolve(), text('Done.')],
    ])
    await person.sendMessage('go')
    expect(await person.addToolApprovalResponse(approve('a1'))).toEqual({ status: 'waiting' })
    await settle()
    expect(server.requests).toHaveLength(1)
    expect(await person.addToolApprovalResponse(approve('a2'))).toEqual({ status: 'sent' })
    expect(answersOf(server)).toEqual([[], ['a1 yes', 'a2 yes']])
  })

  test('S4.53 two answers in one tick lead to one request', async () => {
    const { person, server } = await openChat(wire, [
      [gated(1), gated(2)],
      [resolve(), text('Done.')],
    ])
    await person.sendMessage('go')
    const both = [
      person.addToolApprovalResponse(approve('a1')),
      person.addToolApprovalResponse(approve('a2')),
    ]
    await Promise.all(both)
    expect(answersOf(server)).toEqual([[], ['a1 yes', 'a2 yes']])
  })

  test('S4.54 one approved and one denied are sent in one request', async () => {
    const { client, person, server } = await openChat(wire, [
      [gated(1), gated(2)],
      [resolve(), text('Done.')],
    ])
    await person.sendMessage('go')
    await person.addToolApprovalResponse({ id: 'a2', approved: false })
    await person.addToolApprovalResponse(approve('a1'))
    expect(server.requests).toHaveLength(2)
    expect(answersOf(server)[1]?.toSorted()).toEqual(['a1 yes', 'a2 no'])
    expect([stateOf(client, 'c1'), stateOf(client, 'c2')]).toEqual(['complete', 'denied'])
  })

  test('S4.55 a denial is sent, so that the model can react', async () => {
    const { client, person, server } = await openChat(wire, [gated(1), [resolve(), text('I left it.')]])
    await person.sendMessage('go')
    expect(await person.addToolApprovalResponse({ id: 'a1', approved: false })).toEqual({ status: 'sent' })
    expect(answersOf(server)).toEqual([[], ['a1 no']])
    expect(saidBy(client)).toBe('I left it.')
  })

  test('S4.63 the first answer wins: every later one is told so and changes and sends nothing', async () => {
    const { client, person, server, settle } = await openChat(wire, [
      gated(1),
      [hold(), resolve(), text('Done.')],
    ])
    await person.sendMessage('go')
    const first = person.addToolApprovalResponse(approve('a1'))
    const before = callOf(client, 'c1')
    expect(await person.addToolApprovalResponse({ id: 'a1', approved: false, reason: 'no!' })).toEqual({
      status: 'already-answered',
    })
    expect(callOf(client, 'c1')).toBe(before)
    server.release()
    await first
    const after = callOf(client, 'c1')
    expect(await person.addToolApprovalResponse({ id: 'a1', approved: false })).toEqual({
      status: 'already-answered',
    })
    expect(callOf(client, 'c1')).toBe(after)
    await settle()
    expect(answersOf(server)).toEqual([[], ['a1 yes']])
  })

  test('an unknown id is not found and leaves a warning', async () => {
    const onWarning = vi.fn()
    const { client, person, server } = await openChat(wire, [gated(1)], { onWarning })
    await person.sendMessage('go')
    const before = client.getSnapshot()
    expect(await person.addToolApprovalResponse(approve('nothing'))).toEqual({ status: 'not-found' })
    expect(await person.addToolApprovalResponse(approve('c1'))).toEqual({ status: 'not-found' })
    expect(onWarning).toHaveBeenCalledTimes(2)
    expect(client.getSnapshot()).toBe(before)
    expect(server.requests).toHaveLength(1)
  })

  test.each(['approval-not-found', 'approval-tampered', 'approval-conflict', 'approval-stale'] as const)(
    'an answer refused with %s says so, and the call is cancelled with the problem beside it',
    async (code) => {
      const { client, person, server } = await openChat(wire, [
        gated(1),
        [refuse('a1', code, 'Not this one.'), text('Sorry.')],
      ])
      await person.sendMessage('go')
      expect(await person.addToolApprovalResponse(approve('a1'))).toEqual({
        status: 'refused',
        code,
        reason: 'Not this one.',
      })
      expect(callOf(client, 'c1')).toMatchObject({ state: 'cancelled', approval: { problem: code } })
      expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
      expect(server.requests).toHaveLength(2)
    },
  )

  test("an answer that comes too late by the server's clock is expired", async () => {
    const { client, person } = await openChat(wire, [gated(1), [refuse('a1', 'approval-expired')]])
    await person.sendMessage('go')
    expect(await person.addToolApprovalResponse(approve('a1'))).toEqual({ status: 'expired' })
    expect(callOf(client, 'c1')).toMatchObject({
      state: 'cancelled',
      approval: { problem: 'approval-expired' },
    })
  })

  test('with the ledger out of reach the answer is kept, and retry offers it again', async () => {
    const { client, person, server, settle } = await openChat(wire, [
      gated(1),
      [refuse('a1', 'ledger-unavailable')],
      [resolve(), text('Done.')],
    ])
    await person.sendMessage('go')
    expect(await person.addToolApprovalResponse(approve('a1'))).toMatchObject({
      status: 'refused',
      code: 'ledger-unavailable',
    })
    expect(callOf(client, 'c1')).toMatchObject({
      state: 'approval-responded',
      approval: { approved: true, delivery: 'waiting', problem: 'ledger-unavailable' },
    })
    await settle()
    expect(server.requests).toHaveLength(2)
    await person.retry()
    expect(answersOf(server)).toEqual([[], ['a1 yes'], ['a1 yes']])
    expect(callOf(client, 'c1')).toMatchObject({ state: 'complete', approval: { delivery: 'settled' } })
    expect(callOf(client, 'c1').approval?.problem).toBeUndefined()
  })

  test('S4.67 a continuation that fails before it was acknowledged: the verdict is kept as waiting, retry sends it', async () => {
    const onError = vi.fn()
    const { client, person, server, settle } = await openChat(
      wire,
      [gated(1), [cut()], [resolve(), text('Done.')]],
      { onError },
    )
    await person.sendMessage('go')
    expect(await person.addToolApprovalResponse(approve('a1'))).toMatchObject({
      status: 'failed',
      error: { code: 'connection-failed' },
    })
    expect(client.getSnapshot()).toMatchObject({ status: 'error', error: { code: 'connection-failed' } })
    expect(callOf(client, 'c1')).toMatchObject({
      state: 'approval-responded',
      approval: { approved: true, delivery: 'waiting' },
    })
    expect(onError).toHaveBeenCalledTimes(1)
    await settle()
    expect(server.requests).toHaveLength(2)
    await person.retry()
    expect(answersOf(server)).toEqual([[], ['a1 yes'], ['a1 yes']])
    expect(server.requests[2]?.resume).toEqual(server.requests[1]?.resume)
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
  })

  test('S4.67 after it was acknowledged the delivery is unknown: only retry sends the answer again, unchanged', async () => {
    const { client, person, server } = await openChat(wire, [
      gated(1),
      [textStart(), textDelta('I am'), cut()],
      [resolve(), text('Done.')],
    ])
    await person.sendMessage('go')
    expect(await person.addToolApprovalResponse({ ...approve('a1'), reason: 'yes' })).toMatchObject({
      status: 'failed',
    })
    expect(callOf(client, 'c1').approval?.delivery).toBe('unknown')
    await person.retry()
    expect(server.requests[2]?.resume).toEqual(server.requests[1]?.resume)
    expect(callOf(client, 'c1')).toMatchObject({ state: 'complete', approval: { delivery: 'settled' } })
  })

  test('an answer of unknown delivery rides in the history of the next message, not in its resume', async () => {
    const { person, server } = await openChat(wire, [
      gated(1),
      [textStart(), textDelta('I am'), cut()],
      [text('Hello again.')],
    ])
    await person.sendMessage('go')
    await person.addToolApprovalResponse(approve('a1'))
    await person.sendMessage('still there?')
    expect(answersOf(server)).toEqual([[], ['a1 yes'], []])
    const calls = server.requests[2]?.messages.flatMap((message) =>
      message.role === 'assistant' ? (message.toolCalls ?? []) : [],
    )
    expect(calls).toMatchObject([
      { id: 'c1', metadata: { countersign: { token: 'token-a1', approval: { id: 'a1', approved: true } } } },
    ])
  })

  test('answers that were not sent are sent with the next request, whatever causes it', async () => {
    const { person, server } = await openChat(wire, [
      gated(1),
      [cut()],
      [resolve(), text('Done, and hello.')],
    ])
    await person.sendMessage('go')
    await person.addToolApprovalResponse(approve('a1'))
    await person.sendMessage('hello?')
    expect(answersOf(server)).toEqual([[], ['a1 yes'], ['a1 yes']])
  })

  test('an edit of a key that may not be edited is told at once, and the request stays open', async () => {
    const { client, person, server } = await openChat(wire, [
      [call('c1', 'delete_file', { path: '1.log', force: false }), ask('a1', 'c1', { allowEdits: ['path'] })],
      [resolve()],
    ])
    await person.sendMessage('go')
    const edit = (input: unknown) => person.addToolApprovalResponse({ id: 'a1', approved: true, input })
    expect(await edit({ path: 'b.log', force: true })).toEqual({
      status: 'refused',
      code: 'approval-malformed',
      reason: 'These arguments may not be edited: force.',
    })
    expect(callOf(client, 'c1').state).toBe('approval-requested')
    expect(await edit({ path: 'b.log', force: false })).toEqual({ status: 'sent' })
    expect(server.requests).toHaveLength(2)
  })

  test('an edit that is no object is told at once, and the request stays open', async () => {
    const { client, person, server } = await openChat(wire, [
      [call('c1', 'delete_file', { path: '1.log' }), ask('a1', 'c1', { allowEdits: true })],
      [resolve()],
    ])
    await person.sendMessage('go')
    const edit = (input: unknown) => person.addToolApprovalResponse({ id: 'a1', approved: true, input })
    for (const input of [null, [], ['b.log'], 'b.log', 1, false]) {
      expect(await edit(input), String(input)).toEqual({
        status: 'refused',
        code: 'approval-malformed',
        reason: '`input` must be an object with all arguments; leave it out if nothing is edited.',
      })
    }
    expect(callOf(client, 'c1').state).toBe('approval-requested')
    expect(server.requests).toHaveLength(1)
    expect(await edit({ path: 'b.log' })).toEqual({ status: 'sent' })
  })

  test('an edit is what it was when it was given, whatever the page does with its object afterwards', async () => {
    const { client, person, server } = await openChat(wire, [
      [call('c1', 'delete_file', { path: '1.log' }), ask('a1', 'c1', { allowEdits: true }), gated(2)],
      [resolve()],
    ])
    await person.sendMessage('go')
    const input = { path: 'b.log' }
    void person.addToolApprovalResponse({ id: 'a1', approved: true, input })
    input.path = '/etc/passwd'
    await person.addToolApprovalResponse({ id: 'a2', approved: true })
    expect(server.requests[1]?.resume?.[0]?.payload).toEqual({
      approved: true,
      editedArgs: { path: 'b.log' },
    })
    expect(callOf(client, 'c1').approval?.input).toEqual({ path: 'b.log' })
  })

  test('edited arguments and scope are sent with the answer, and only with an approval', async () => {
    const offer = { allowEdits: true, options: ['deny', 'once', 'session'] } as const
    const { client, person, server } = await openChat(wire, [
      [call('c1', 'delete_file', { path: '1.log' }), ask('a1', 'c1', offer), gated(2)],
      [resolve()],
    ])
    await person.sendMessage('go')
    void person.addToolApprovalResponse({
      id: 'a1',
      approved: true,
      input: { path: 'b.log' },
      scope: 'session',
    })
    await person.addToolApprovalResponse({
      id: 'a2',
      approved: false,
      input: { path: 'c.log' },
      scope: 'session',
    })
    expect(server.requests[1]?.resume?.map(({ payload }) => payload)).toEqual([
      { approved: true, editedArgs: { path: 'b.log' }, scope: 'session' },
      { approved: false },
    ])
    expect(callOf(client, 'c1')).toMatchObject({
      input: { path: '1.log' },
      approval: { input: { path: 'b.log' }, scope: 'session' },
    })
  })

  test('an answer that asks for more than was offered is refused here, and the request stays open', async () => {
    const { client, person, server, settle } = await openChat(wire, [gated(1), [resolve()]])
    await person.sendMessage('go')
    const code = 'approval-malformed'
    const edited = { ...approve('a1'), input: { path: 'b.log' } }
    expect(await person.addToolApprovalResponse(edited)).toMatchObject({ status: 'refused', code })
    const forGood = { ...approve('a1'), scope: 'session' } as const
    expect(await person.addToolApprovalResponse(forGood)).toMatchObject({ status: 'refused', code })
    await settle()
    expect(stateOf(client, 'c1')).toBe('approval-requested')
    expect(server.requests).toHaveLength(1)
    expect(await person.addToolApprovalResponse(approve('a1'))).toEqual({ status: 'sent' })
  })

  test('a request that changed after it was shown cannot be answered', async () => {
    const { client, person, server } = await openChat(wire, [
      [...gated(1), { step: 'event', event: changedRequest }],
      [text('Fine.')],
    ])
    await person.sendMessage('go')
    expect(callOf(client, 'c1')).toMatchObject({
      input: { path: '1.log' },
      approval: { problem: 'approval-changed' },
    })
    expect(await person.addToolApprovalResponse(approve('a1'))).toEqual({
      status: 'closed',
      reason: 'approval-changed',
    })
    expect(server.requests).toHaveLength(1)
    await person.sendMessage('then forget it')
    expect(stateOf(client, 'c1')).toBe('cancelled')
    expect(answersOf(server)).toEqual([[], ['a1 cancelled']])
  })

  test('a request whose arguments are not those of the call cannot be answered and is not announced', async () => {
    const onApprovalRequest = vi.fn()
    const [callStep] = gated(1)
    const { person } = await openChat(wire, [[callStep ?? [], { step: 'event', event: changedRequest }]], {
      onApprovalRequest,
    })
    await person.sendMessage('go')
    expect(onApprovalRequest).not.toHaveBeenCalled()
    expect(await person.addToolApprovalResponse(approve('a1'))).toEqual({
      status: 'closed',
      reason: 'approval-changed',
    })
  })

  test('a run that ends with RUN_ERROR fails the answer that it carried', async () => {
    const { person } = await openChat(wire, [gated(1), [error('The model is gone.', 'model-gone')]])
    await person.sendMessage('go')
    expect(await person.addToolApprovalResponse(approve('a1'))).toMatchObject({
      status: 'failed',
      error: { code: 'run-error', message: 'The model is gone.', data: { code: 'model-gone' } },
    })
  })

  test('an answer that took effect before its run ended with RUN_ERROR was sent', async () => {
    const { client, person } = await openChat(wire, [gated(1), [resolve(), error('The model is gone.')]])
    await person.sendMessage('go')
    expect(await person.addToolApprovalResponse(approve('a1'))).toEqual({ status: 'sent' })
    expect(client.getSnapshot()).toMatchObject({ status: 'error', error: { code: 'run-error' } })
  })
})

test('answers in the microtasks around the end of a stream are sent once, whatever the moment', async () => {
  for (let moment = 0; moment < 30; moment++) {
    const { client, person, server, settle } = await openChat('in-process', [
      [...gated(1)],
      byHand,
      [resolve(), text('Done.')],
    ])
    await person.sendMessage('go')
    void person.addToolApprovalResponse(approve('a1'))
    const run = await server.request(2)
    run.emit({ step: 'resolve' }, ...gated(2))
    await until(client, ({ pendingApprovals }) => pendingApprovals.length === 1)
    run.emit({ step: 'finish', options: {} })
    for (let i = 0; i < moment; i++) await undefined
    const second = await person.addToolApprovalResponse(approve('a2'))
    await settle()
    expect(second, `at microtask ${moment}`).toEqual({ status: 'sent' })
    expect(answersOf(server), `at microtask ${moment}`).toEqual([[], ['a1 yes'], ['a2 yes']])
  }
})

const changedRequest = {
  type: 'CUSTOM',
  name: 'approval-requested',
  value: {
    toolCallId: 'c1',
    toolName: 'delete_file',
    input: { path: 'everything' },
    approval: { id: 'a1', needsApproval: true, options: ['deny', 'once'], token: 'token-a1' },
  },
}
