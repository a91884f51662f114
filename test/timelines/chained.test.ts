import { clientTool } from '@countersign/core'
import {
  ask,
  call,
  clientReady,
  cut,
  error,
  finish,
  gated,
  hold,
  type RunScript,
  resolve,
  text,
  until,
} from '@countersign/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  answersOf,
  callOf,
  failOnUnhandledRejections,
  flags,
  idle,
  openChat,
  saidBy,
  stateOf,
  type Wire,
  wires,
} from '../client/open-chat.js'
import { loadWithoutSkippedFlag } from './without-skipped-flag.js'

failOnUnhandledRejections()

const approve = (id: string) => ({ id, approved: true })

const named = wires.map((wire) => [wire === 'sse' ? 'S4.81 over real SSE' : 'in process', wire] as const)

/** Stream 2 brings `second` and then waits for `release('stream 2')`. */
const chain: RunScript[] = [
  gated('A'),
  [resolve(), ...gated('B', 'send_mail', { to: 'team' }), hold('stream 2')],
  [resolve(), text('All done.')],
]

/** The person has approved A and sees B while stream 2 is still open. */
async function reachB(wire: Wire, runs: RunScript[] = chain, options = {}) {
  const chat = await openChat(wire, runs, options)
  await chat.person.sendMessage('Tidy up.')
  const first = chat.person.addToolApprovalResponse(approve('aA'))
  await until(chat.client, ({ pendingApprovals }) =>
    pendingApprovals.some(({ approval }) => approval?.id === 'aB'),
  )
  return { ...chat, first }
}

describe.each(named)('%s', (_, wire) => {
  test('S4.71 a single approval, the state after each step', async () => {
    const { client, person, server } = await openChat(wire, [
      [
        text('I will delete it.'),
        call('c1', 'delete_file', { path: 'a.log' }),
        hold('asked'),
        ask('a1', 'c1'),
      ],
      [hold('accepted'), resolve(), text('Deleted.')],
    ])
    const sent = person.sendMessage('Delete a.log')
    expect(client.getSnapshot()).toMatchObject({ status: 'submitted', isLoading: true })
    await until(client, () => stateOf(client, 'c1') === 'input-complete')
    expect(client.getSnapshot()).toMatchObject({ status: 'streaming', pendingApprovals: [] })
    expect(callOf(client, 'c1')).toMatchObject({ name: 'delete_file', input: { path: 'a.log' } })

    server.release('asked')
    expect(await sent).toEqual({ status: 'sent' })
    expect(client.getSnapshot()).toMatchObject({ status: 'awaiting-approval', isLoading: false })
    expect(client.getSnapshot().pendingApprovals).toEqual([callOf(client, 'c1')])
    expect(callOf(client, 'c1')).toMatchObject({
      state: 'approval-requested',
      approval: { id: 'a1', needsApproval: true, options: ['deny', 'once'], token: 'token-a1' },
    })

    const answered = person.addToolApprovalResponse(approve('a1'))
    expect(callOf(client, 'c1')).toMatchObject({
      state: 'approval-responded',
      approval: { approved: true, delivery: 'sent' },
    })
    expect(client.getSnapshot()).toMatchObject({ status: 'submitted', pendingApprovals: [] })
    expect(flags(client)).toEqual({ continuationPending: true, continuationSkipped: false })

    server.release('accepted')
    expect(await answered).toEqual({ status: 'sent' })
    expect(callOf(client, 'c1')).toMatchObject({
      state: 'complete',
      output: 'done',
      approval: { delivery: 'settled' },
    })
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
    expect(saidBy(client)).toBe('I will delete it. Deleted.')
    expect(flags(client)).toEqual(idle)
    expect(server.requests).toHaveLength(2)
    expect(server.requests[1]?.resume).toEqual([
      {
        interruptId: 'a1',
        status: 'resolved',
        payload: { approved: true },
        metadata: { countersign: { token: 'token-a1', sentIn: server.requests[1]?.runId } },
      },
    ])
  })

  test('S4.72 a single denial, the state after each step', async () => {
    const { client, person, server } = await openChat(wire, [
      gated(1),
      [hold('accepted'), resolve(), text('I left it, because you need it.')],
    ])
    await person.sendMessage('Delete 1.log')
    expect(stateOf(client, 'c1')).toBe('approval-requested')
    const answered = person.addToolApprovalResponse({ id: 'a1', approved: false, reason: 'I need it' })
    expect(callOf(client, 'c1')).toMatchObject({
      state: 'approval-responded',
      approval: { approved: false, reason: 'I need it' },
    })
    server.release('accepted')
    expect(await answered).toEqual({ status: 'sent' })
    expect(callOf(client, 'c1')).toMatchObject({ state: 'denied', error: { message: 'I need it' } })
    expect(client.getSnapshot().status).toBe('ready')
    expect(answersOf(server)).toEqual([[], ['a1 no (I need it)']])
  })

  test('S4.73 E.5 the second approval is given while its own stream is open: exactly three requests', async () => {
    const { client, person, server, first } = await reachB(wire)
    expect(flags(client)).toEqual({ continuationPending: true, continuationSkipped: false })
    const second = person.addToolApprovalResponse(approve('aB'))
    expect(stateOf(client, 'cB')).toBe('approval-responded')
    expect(flags(client)).toEqual({ continuationPending: true, continuationSkipped: true })
    expect(server.requests).toHaveLength(2)
    server.release('stream 2')
    expect(await first).toEqual({ status: 'sent' })
    expect(await second).toEqual({ status: 'sent' })
    expect(answersOf(server)).toEqual([[], ['aA yes'], ['aB yes']])
    expect(server.mostStreams).toBe(1)
    expect(flags(client)).toEqual(idle)
    expect(saidBy(client)).toBe('All done.')
    expect(client.getSnapshot().status).toBe('ready')
  })

  test('S4.74 with the skipped flag disabled the same timeline stops at two requests', async () => {
    const { client, person, server, settle } = await reachB(wire, chain, {
      client: await loadWithoutSkippedFlag(),
    })
    void person.addToolApprovalResponse(approve('aB'))
    server.release('stream 2')
    await until(client, ({ isLoading }) => !isLoading)
    await settle()
    expect(answersOf(server)).toEqual([[], ['aA yes']])
    expect(callOf(client, 'cB')).toMatchObject({
      state: 'approval-responded',
      approval: { delivery: 'waiting' },
    })
  })

  test('S4.75 the second request is denied while its own stream is open', async () => {
    const { client, person, server } = await reachB(wire)
    const second = person.addToolApprovalResponse({ id: 'aB', approved: false, reason: 'no mail' })
    server.release('stream 2')
    expect(await second).toEqual({ status: 'sent' })
    expect(answersOf(server)).toEqual([[], ['aA yes'], ['aB no (no mail)']])
    expect(stateOf(client, 'cA')).toBe('complete')
    expect(stateOf(client, 'cB')).toBe('denied')
  })

  test('S4.76 stream 2 brings B and C: no third request before C is answered too', async () => {
    const { client, person, server, settle } = await reachB(wire, [
      gated('A'),
      [resolve(), ...gated('B'), ...gated('C'), hold('stream 2')],
      [resolve(), text('All done.')],
    ])
    const second = person.addToolApprovalResponse(approve('aB'))
    server.release('stream 2')
    expect(await second).toEqual({ status: 'waiting' })
    await settle()
    expect(server.requests).toHaveLength(2)
    expect(client.getSnapshot().status).toBe('awaiting-approval')
    expect(callOf(client, 'cB').approval?.delivery).toBe('waiting')
    expect(await person.addToolApprovalResponse(approve('aC'))).toEqual({ status: 'sent' })
    expect(answersOf(server)).toEqual([[], ['aA yes'], ['aB yes', 'aC yes']])
  })

  test('S4.77 the second request is answered after its stream has ended', async () => {
    const { client, person, server, settle, first } = await reachB(wire)
    server.release('stream 2')
    expect(await first).toEqual({ status: 'sent' })
    await settle()
    expect(server.requests).toHaveLength(2)
    expect(client.getSnapshot().status).toBe('awaiting-approval')
    expect(flags(client)).toEqual(idle)
    expect(await person.addToolApprovalResponse(approve('aB'))).toEqual({ status: 'sent' })
    expect(server.requests).toHaveLength(3)
  })

  test('S4.78 a chain of three, each answered while its stream is open: four requests', async () => {
    const { client, person, server } = await reachB(wire, [
      gated('A'),
      [resolve(), ...gated('B'), hold('stream 2')],
      [resolve(), ...gated('C'), hold('stream 3')],
      [resolve(), text('All done.')],
    ])
    void person.addToolApprovalResponse(approve('aB'))
    server.release('stream 2')
    await until(client, ({ pendingApprovals }) => pendingApprovals[0]?.approval?.id === 'aC')
    const third = person.addToolApprovalResponse(approve('aC'))
    server.release('stream 3')
    expect(await third).toEqual({ status: 'sent' })
    expect(answersOf(server)).toEqual([[], ['aA yes'], ['aB yes'], ['aC yes']])
    expect(server.mostStreams).toBe(1)
  })

  test.each([
    ['ends with RUN_ERROR', error('overloaded'), 'run-error'],
    ['is cut', cut(), 'connection-failed'],
  ] as const)(
    'S4.79 stream 2 %s after B was answered: no third request by itself, retry works',
    async (_, fault, code) => {
      const { client, person, server, settle, first } = await reachB(wire, [
        gated('A'),
        [resolve(), ...gated('B'), hold('stream 2'), fault],
        [resolve(), text('All done.')],
      ])
      const second = person.addToolApprovalResponse(approve('aB'))
      server.release('stream 2')
      expect(await first).toEqual({ status: 'sent' })
      expect(await second).toEqual({ status: 'waiting' })
      await settle()
      expect(server.requests).toHaveLength(2)
      expect(client.getSnapshot()).toMatchObject({ status: 'error', error: { code } })
      expect(callOf(client, 'cB')).toMatchObject({
        state: 'approval-responded',
        approval: { approved: true, delivery: 'waiting' },
      })
      expect(flags(client)).toEqual(idle)
      await person.retry()
      expect(answersOf(server)).toEqual([[], ['aA yes'], ['aB yes']])
      expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
    },
  )

  test('S4.80 a client tool and an answer in one stream lead to one continuation', async () => {
    let ran = 0
    const locate = clientTool({
      name: 'locate',
      description: 'Where the person is',
      input: z.object({}),
      execute: () => {
        ran++
        return 'Lisbon'
      },
    })
    const { client, person, server } = await openChat(
      wire,
      [
        [...gated('A'), call('cL', 'locate'), hold('stream 1')],
        [resolve(), text('All done.')],
      ],
      { tools: [locate] },
    )
    const sent = person.sendMessage('Where am I, and delete it.')
    await until(client, ({ pendingApprovals }) => pendingApprovals.length === 1)
    await until(client, () => stateOf(client, 'cL') === 'input-complete')
    const answered = person.addToolApprovalResponse(approve('aA'))
    expect(ran).toBe(0)
    server.release('stream 1')
    await sent
    await answered
    await until(client, () => saidBy(client) === 'All done.')
    expect(ran).toBe(1)
    expect(answersOf(server)).toEqual([[], ['aA yes']])
    const results = server.requests[1]?.messages.filter((message) => message.role === 'tool')
    expect(results).toMatchObject([{ toolCallId: 'cL', content: 'Lisbon' }])
    expect(server.requests).toHaveLength(2)
  })

  test('E.11 an approved client tool runs once, when the server has handed it out', async () => {
    const inputs: unknown[] = []
    const open = clientTool({
      name: 'open_page',
      description: 'Opens a page',
      input: z.object({ url: z.string() }),
      needsApproval: true,
      execute: (input) => {
        inputs.push(input)
        return 'opened'
      },
    })
    const { person, server } = await openChat(
      wire,
      [
        [call('c1', 'open_page', { url: 'a' }), ask('a1', 'c1')],
        [clientReady('c1', { url: 'b' }), hold('stream 2'), finish()],
        [text('It is open.')],
      ],
      { tools: [open] },
    )
    await person.sendMessage('Open it.')
    const answered = person.addToolApprovalResponse(approve('a1'))
    await server.held('stream 2')
    expect(inputs).toEqual([])
    server.release('stream 2')
    expect(await answered).toEqual({ status: 'sent' })
    await server.request(3)
    expect(inputs).toEqual([{ url: 'b' }])
    expect(server.requests[2]?.messages.filter(({ role }) => role === 'tool')).toMatchObject([
      { content: 'opened' },
    ])
    expect(answersOf(server)).toEqual([[], ['a1 yes'], []])
  })
})
