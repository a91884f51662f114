import { ChatClient, clientTool } from '@countersign/client'
import {
  action,
  call,
  cut,
  error,
  event,
  finish,
  gated,
  hold,
  resolve,
  result,
  type Step,
  scriptedConnection,
  text,
  until,
} from '@countersign/testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { full } from '../full.js'
import {
  answersOf,
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
  test('S4.56 continuationPending is set while the stream of a continuation is open, and never else', async () => {
    const { client, person, server } = await openChat(wire, [
      [hold('1'), ...gated(1)],
      [hold('2'), resolve()],
    ])
    const sent = person.sendMessage('go')
    expect(client.inspect()).toMatchObject({ continuationPending: false, openRun: expect.any(String) })
    server.release('1')
    await sent
    expect(client.inspect()).toMatchObject({ continuationPending: false, openRun: undefined })
    const answered = person.addToolApprovalResponse(approve('a1'))
    expect(client.inspect().continuationPending).toBe(true)
    server.release('2')
    await answered
    expect(flags(client)).toEqual(idle)
  })

  test.each([
    ['an error', error()],
    ['a cut', cut()],
  ] as const)('S4.56 continuationPending is false after %s', async (_, fault) => {
    const { client, person } = await openChat(wire, [gated(1), [resolve(), fault]])
    await person.sendMessage('go')
    await person.addToolApprovalResponse(approve('a1'))
    expect(flags(client)).toEqual(idle)
  })

  test('S4.58 continuationSkipped is false when a stream begins and after its check', async () => {
    const seen: boolean[] = []
    const { client, person, server } = await openChat(wire, [
      [...gated(1), hold()],
      [action('look', () => seen.push(client.inspect().continuationSkipped)), resolve(), text('Done.')],
    ])
    void person.sendMessage('go')
    await until(client, ({ pendingApprovals }) => pendingApprovals.length === 1)
    const answered = person.addToolApprovalResponse(approve('a1'))
    expect(client.inspect().continuationSkipped).toBe(true)
    server.release()
    await answered
    expect(seen).toEqual([false])
    expect(flags(client)).toEqual(idle)
  })

  test('S4.60 after a stream answers are sent before the queue, and a message that fails does not hold up the next', async () => {
    const { client, person, server } = await openChat(wire, [
      [...gated(1), hold()],
      [resolve(), text('Deleted.')],
      [cut()],
      [text('Third.')],
    ])
    void person.sendMessage('first')
    await until(client, ({ pendingApprovals }) => pendingApprovals.length === 1)
    const queued = [person.sendMessage('second'), person.sendMessage('third')]
    const answered = person.addToolApprovalResponse(approve('a1'))
    server.release()
    expect(await answered).toEqual({ status: 'sent' })
    expect((await Promise.all(queued)).map(({ status }) => status)).toEqual(['queued', 'queued'])
    await server.request(4)
    await until(client, ({ isLoading }) => !isLoading)
    expect(answersOf(server)).toEqual([[], ['a1 yes'], [], []])
    expect(
      server.requests.map(({ messages }) => messages.filter(({ role }) => role === 'user').length),
    ).toEqual([1, 1, 2, 3])
    expect(saidBy(client)).toContain('Third.')
  })

  test('S4.61 a result of the server alone never causes a request, whatever the finish reason', async () => {
    for (const reason of ['stop', 'tool_calls', 'length', 'something else']) {
      const { client, person, server, settle } = await openChat(wire, [
        [call('c1', 'list'), result('c1', []), finish({ reason })],
      ])
      await person.sendMessage('go')
      await settle()
      expect(server.requests).toHaveLength(1)
      expect(client.getSnapshot().status).toBe('ready')
    }
  })

  test('S4.61 an unsent answer is sent after the stream, whatever the finish reason', async () => {
    for (const reason of ['stop', 'tool_calls', 'length', 'something else']) {
      const { client, person, server } = await openChat(wire, [
        [...gated(1), hold(), finish({ reason })],
        [resolve(), text('Done.')],
      ])
      void person.sendMessage('go')
      await until(client, ({ pendingApprovals }) => pendingApprovals.length === 1)
      const answered = person.addToolApprovalResponse(approve('a1'))
      server.release()
      expect(await answered).toEqual({ status: 'sent' })
      expect(server.requests).toHaveLength(2)
    }
  })

  test('S4.62 a check that was skipped is not replayed after a stream that failed', async () => {
    for (const fault of [error(), cut(), event({ type: 'TEXT_MESSAGE_END', messageId: 'never opened' })]) {
      const { client, person, server, settle } = await openChat(wire, [[...gated(1), hold(), fault]])
      void person.sendMessage('go')
      await until(client, ({ pendingApprovals }) => pendingApprovals.length === 1)
      const answered = person.addToolApprovalResponse(approve('a1'))
      server.release()
      expect(await answered).toEqual({ status: 'waiting' })
      await settle()
      expect(server.requests).toHaveLength(1)
      expect(client.getSnapshot().status).toBe('error')
      expect(flags(client)).toEqual(idle)
    }
  })

  test('S4.64 a final answer of text alone never causes another request', async () => {
    const { client, person, server, settle } = await openChat(wire, [
      [text('Hello.')],
      gated(1),
      [resolve(), text('Done.')],
    ])
    await person.sendMessage('hi')
    await settle()
    expect(server.requests).toHaveLength(1)
    await person.sendMessage('go')
    await person.addToolApprovalResponse(approve('a1'))
    await settle()
    expect(server.requests).toHaveLength(3)
    expect(client.getSnapshot().status).toBe('ready')
  })
})

test('S4.65 a thousand chained approvals (250 in npm test), each given while its stream is open, make one request each and no deep stack', async () => {
  const count = full ? 1000 : 250
  const depths: number[] = []
  const server = scriptedConnection([], {
    otherwise: (_, run): Step[] => [resolve(), ...(run <= count ? gated(run) : [text('Done.')])],
  })
  Error.stackTraceLimit = 500
  onTestFinished(() => {
    Error.stackTraceLimit = 10
  })
  const client = new ChatClient({
    connection: server,
    onApprovalRequest({ approvalId }) {
      depths.push(new Error().stack?.split('\n').length ?? 0)
      void client.addToolApprovalResponse(approve(approvalId))
    },
  })
  void client.sendMessage('go')
  await until(client, ({ isLoading }) => !isLoading && server.requests.length > count, 50_000)
  expect(saidBy(client)).toBe('Done.')
  expect(server.requests).toHaveLength(count + 1)
  expect(new Set(answersOf(server).flat()).size).toBe(count)
  expect(server.mostStreams).toBe(1)
  expect(depths.at(-1)).toBe(depths[0])
})

describe('a runaway server', () => {
  const asksAgain = [call('c1', 'ping')]

  test('is stopped after maxContinuations with an error that says so', async () => {
    const onError = vi.fn()
    const { client, person, server, settle } = await openChat('in-process', [], {
      onError,
      maxContinuations: 3,
      tools: [pingTool()],
      otherwise: (_, run) => asksAgain.map((step) => ({ ...step, id: `c${run}` })),
    })
    await person.sendMessage('go')
    await until(client, ({ error: fault }) => fault !== undefined)
    await settle()
    expect(server.requests).toHaveLength(4)
    expect(client.getSnapshot()).toMatchObject({
      status: 'error',
      error: { code: 'too-many-continuations', data: { limit: 3 } },
    })
    expect(onError).toHaveBeenCalledTimes(1)
  })

  test('may go on when the user acts, and the output that was held is sent', async () => {
    const { client, person, server, settle } = await openChat('in-process', [asksAgain, [text('Hello.')]], {
      maxContinuations: 0,
      tools: [pingTool()],
    })
    await person.sendMessage('go')
    await until(client, ({ error: fault }) => fault !== undefined)
    await settle()
    expect(server.requests).toHaveLength(1)
    await person.sendMessage('go on')
    expect(client.getSnapshot().status).toBe('ready')
    expect(server.requests[1]?.messages.filter(({ role }) => role === 'tool')).toHaveLength(1)
  })
})

test('a server that answers every continuation with the same unanswered state is not asked again and again', async () => {
  const { client, person, server, settle } = await openChat('in-process', [
    gated(1),
    [text('I did nothing.')],
  ])
  await person.sendMessage('go')
  await person.addToolApprovalResponse(approve('a1'))
  await settle()
  expect(server.requests).toHaveLength(2)
  expect(stateOf(client, 'c1')).toBe('approval-responded')
})

function pingTool() {
  return clientTool({ name: 'ping', description: 'Answers', input: z.object({}), execute: () => 'pong' })
}
