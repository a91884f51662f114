import { type ClientToolContext, clientTool } from '@countersign/core'
import {
  ask,
  call,
  clientReady,
  cut,
  error,
  finish,
  gated,
  hold,
  resolve,
  result,
  text,
  until,
} from '@countersign/testing'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
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

/** A client tool that does what the test says, and a count of its runs. */
function locateWith(
  execute: (input: { city?: string | undefined }, context: ClientToolContext) => unknown = () => 'Lisbon',
) {
  const ran = vi.fn(execute)
  const input = z.object({ city: z.string().optional() })
  return {
    ran,
    tools: [clientTool({ name: 'locate', description: 'Where the person is', input, execute: ran })],
  }
}

const toolMessages = (messages: readonly { role: string }[] | undefined) =>
  messages?.filter(({ role }) => role === 'tool')

describe.each(wires)('%s', (wire) => {
  test('a client tool runs when its run has finished, never at the end of its arguments', async () => {
    const { ran, tools } = locateWith()
    const { client, person, server } = await openChat(
      wire,
      [[call('c1', 'locate'), hold()], [text('You are in Lisbon.')]],
      { tools },
    )
    void person.sendMessage('where am I?')
    await until(client, () => stateOf(client, 'c1') === 'input-complete')
    expect(ran).not.toHaveBeenCalled()
    server.release()
    await server.request(2)
    await until(client, ({ isLoading }) => !isLoading)
    expect(ran).toHaveBeenCalledTimes(1)
    expect(callOf(client, 'c1')).toMatchObject({ state: 'complete', output: 'Lisbon' })
    expect(toolMessages(server.requests[1]?.messages)).toMatchObject([
      { toolCallId: 'c1', content: 'Lisbon' },
    ])
    expect(server.requests[0]?.tools).toMatchObject([{ name: 'locate', description: 'Where the person is' }])
    expect(saidBy(client)).toBe('You are in Lisbon.')
  })

  test.each([
    ['an error', error(), 'run-error'],
    ['a cut', cut(), 'connection-failed'],
  ] as const)('a client tool does not run when its run ended with %s', async (_, fault, code) => {
    const { ran, tools } = locateWith()
    const { client, person, server, settle } = await openChat(wire, [[call('c1', 'locate'), fault]], {
      tools,
    })
    expect(await person.sendMessage('go')).toMatchObject({ status: 'failed', error: { code } })
    await settle()
    expect(ran).not.toHaveBeenCalled()
    expect(server.requests).toHaveLength(1)
    expect(client.getSnapshot().status).toBe('error')
  })

  test('two client tools of one run run together and lead to one continuation', async () => {
    const { ran, tools } = locateWith(({ city }) => `in ${city}`)
    const { person, server, client } = await openChat(
      wire,
      [[call('c1', 'locate', { city: 'Rome' }), call('c2', 'locate', { city: 'Oslo' })], [text('Two.')]],
      { tools },
    )
    await person.sendMessage('go')
    await until(client, () => saidBy(client) === 'Two.')
    expect(ran).toHaveBeenCalledTimes(2)
    expect(server.requests).toHaveLength(2)
    expect(toolMessages(server.requests[1]?.messages)).toMatchObject([
      { content: 'in Rome' },
      { content: 'in Oslo' },
    ])
  })

  test('beside a gated call the client runs its own tool, and waits for the user before it goes on', async () => {
    const { ran, tools } = locateWith()
    const { client, person, server, settle } = await openChat(
      wire,
      [
        [call('cL', 'locate'), ...gated(1)],
        [resolve(), text('Done.')],
      ],
      { tools },
    )
    await person.sendMessage('go')
    await until(client, () => stateOf(client, 'cL') === 'complete')
    await settle()
    expect(ran).toHaveBeenCalledTimes(1)
    expect(server.requests).toHaveLength(1)
    expect(await person.addToolApprovalResponse(approve('a1'))).toEqual({ status: 'sent' })
    expect(server.requests).toHaveLength(2)
    expect(toolMessages(server.requests[1]?.messages)).toHaveLength(1)
  })

  test('only calls named by pendingToolCallIds run where the server names them', async () => {
    const { ran, tools } = locateWith()
    const { client, person, server, settle } = await openChat(
      wire,
      [
        [
          call('c1', 'locate', { city: 'a' }),
          call('c2', 'locate', { city: 'b' }),
          result('c1'),
          finish({ pending: ['c2'] }),
        ],
        [text('Done.')],
      ],
      { tools },
    )
    await person.sendMessage('go')
    await until(client, () => saidBy(client) === 'Done.')
    await settle()
    expect(ran.mock.calls.map(([input]) => input)).toEqual([{ city: 'b' }])
    expect(server.requests).toHaveLength(2)
  })

  test('a tool that throws has an error as its result, and the conversation goes on', async () => {
    const { tools } = locateWith(() => {
      throw new Error('No signal.')
    })
    const { client, person, server } = await openChat(wire, [[call('c1', 'locate')], [text('Too bad.')]], {
      tools,
    })
    await person.sendMessage('go')
    await until(client, () => saidBy(client) === 'Too bad.')
    expect(callOf(client, 'c1')).toMatchObject({ state: 'error', error: { message: 'No signal.' } })
    expect(toolMessages(server.requests[1]?.messages)).toMatchObject([
      { toolCallId: 'c1', error: 'No signal.' },
    ])
    await until(client, ({ isLoading }) => !isLoading)
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
  })

  test('arguments that do not fit the schema never reach the tool; the model is told what is wrong', async () => {
    const { ran, tools } = locateWith()
    const { client, person, server } = await openChat(
      wire,
      [[call('c1', 'locate', { city: 7 })], [text('Sorry.')]],
      { tools },
    )
    await person.sendMessage('go')
    await until(client, () => saidBy(client) === 'Sorry.')
    expect(ran).not.toHaveBeenCalled()
    expect(callOf(client, 'c1').state).toBe('error')
    expect(callOf(client, 'c1').error?.message).toMatch(/locate.*city/)
    expect(toolMessages(server.requests[1]?.messages)).toHaveLength(1)
  })

  test('arguments that are no JSON are an error of the call, and the tool does not run', async () => {
    const { ran, tools } = locateWith()
    const broken = [
      { step: 'call-start', id: 'c1', name: 'locate' },
      { step: 'call-args', id: 'c1', delta: '{"city":' },
      { step: 'call-end', id: 'c1' },
    ] as const
    const { client, person } = await openChat(wire, [broken, [text('Sorry.')]], { tools })
    await person.sendMessage('go')
    await until(client, () => saidBy(client) === 'Sorry.')
    expect(ran).not.toHaveBeenCalled()
    expect(callOf(client, 'c1').state).toBe('error')
  })

  test('stop while a tool runs aborts its signal, drops its output and sends nothing', async () => {
    let finishTool = (_: string): void => {}
    let signal: AbortSignal | undefined
    const { tools } = locateWith((_, context) => {
      signal = context.signal
      return new Promise<string>((done) => {
        finishTool = done
      })
    })
    const { client, person, server, settle } = await openChat(wire, [[call('c1', 'locate')]], { tools })
    await person.sendMessage('go')
    await until(client, () => stateOf(client, 'c1') === 'executing')
    expect(signal?.aborted).toBe(false)
    person.stop()
    expect(signal?.aborted).toBe(true)
    expect(client.getSnapshot().status).toBe('ready')
    expect(callOf(client, 'c1')).toMatchObject({ state: 'error', error: { code: 'interrupted' } })
    const stopped = client.getSnapshot()
    finishTool('Lisbon')
    await settle()
    expect(client.getSnapshot()).toBe(stopped)
    expect(server.requests).toHaveLength(1)
  })

  test('clear while a tool runs drops its output: nothing appears in the new conversation', async () => {
    let finishTool = (_: string): void => {}
    const { tools } = locateWith(
      () =>
        new Promise<string>((done) => {
          finishTool = done
        }),
    )
    const { client, person, server, settle } = await openChat(wire, [[call('c1', 'locate')]], { tools })
    await person.sendMessage('go')
    await until(client, () => stateOf(client, 'c1') === 'executing')
    person.clear()
    finishTool('Lisbon')
    await settle()
    expect(client.getSnapshot()).toMatchObject({ messages: [], status: 'ready' })
    expect(server.requests).toHaveLength(1)
  })

  test('a message sent while a tool runs waits for its output, which is sent first', async () => {
    let finishTool = (_: string): void => {}
    const { tools } = locateWith(
      () =>
        new Promise<string>((done) => {
          finishTool = done
        }),
    )
    const { client, person, server, settle } = await openChat(
      wire,
      [[call('c1', 'locate')], [text('Lisbon.')], [text('Hello.')]],
      { tools },
    )
    await person.sendMessage('go')
    await until(client, () => stateOf(client, 'c1') === 'executing')
    void person.sendMessage('hello?')
    await settle()
    expect(server.requests).toHaveLength(1)
    finishTool('Lisbon')
    await server.request(3)
    await until(client, ({ isLoading }) => !isLoading)
    expect(toolMessages(server.requests[1]?.messages)).toHaveLength(1)
    expect(server.requests[1]?.messages.filter(({ role }) => role === 'user')).toHaveLength(1)
    expect(server.requests[2]?.messages.filter(({ role }) => role === 'user')).toHaveLength(2)
  })

  test('E.11 an approved client tool waits for client-tool-ready and runs once, with the input handed out', async () => {
    const { ran, tools } = locateWith()
    const { client, person, server } = await openChat(
      wire,
      [
        [call('c1', 'locate', { city: 'asked' }), ask('a1', 'c1')],
        [clientReady('c1', { city: 'handed out' }), hold()],
        [text('Done.')],
      ],
      { tools },
    )
    await person.sendMessage('go')
    const answered = person.addToolApprovalResponse(approve('a1'))
    await server.held()
    expect(ran).not.toHaveBeenCalled()
    server.release()
    await answered
    await until(client, () => saidBy(client) === 'Done.')
    expect(ran.mock.calls.map(([input]) => input)).toEqual([{ city: 'handed out' }])
    expect(callOf(client, 'c1')).toMatchObject({
      state: 'complete',
      approval: { approved: true, delivery: 'settled' },
    })
    expect(answersOf(server)).toEqual([[], ['a1 yes'], []])
  })

  test('a denied client tool never runs', async () => {
    const { ran, tools } = locateWith()
    const { client, person } = await openChat(
      wire,
      [
        [call('c1', 'locate'), ask('a1', 'c1')],
        [resolve(), text('I see.')],
      ],
      { tools },
    )
    await person.sendMessage('go')
    await person.addToolApprovalResponse({ id: 'a1', approved: false })
    expect(ran).not.toHaveBeenCalled()
    expect(stateOf(client, 'c1')).toBe('denied')
  })

  test('client-tool-ready for a call that nobody approved runs nothing', async () => {
    const { ran, tools } = locateWith()
    const { client, person, settle } = await openChat(
      wire,
      [[call('c1', 'locate'), ask('a1', 'c1'), clientReady('c1')]],
      {
        tools,
        onWarning: () => {},
      },
    )
    await person.sendMessage('go')
    await settle()
    expect(ran).not.toHaveBeenCalled()
    expect(stateOf(client, 'c1')).toBe('approval-requested')
  })

  test('an output whose request failed is sent again by retry, and the tool does not run again', async () => {
    const { ran, tools } = locateWith()
    const { client, person, server } = await openChat(
      wire,
      [[call('c1', 'locate')], [cut()], [text('Lisbon.')]],
      { tools },
    )
    await person.sendMessage('go')
    await until(client, ({ status }) => status === 'error')
    await person.retry()
    expect(saidBy(client)).toBe('Lisbon.')
    expect(ran).toHaveBeenCalledTimes(1)
    expect(toolMessages(server.requests[2]?.messages)).toHaveLength(1)
    expect(server.requests).toHaveLength(3)
  })

  test('addToolResult gives the result of a tool that the application runs itself, once', async () => {
    const { client, person, server, settle } = await openChat(wire, [
      [call('c1', 'pick_file'), call('c2', 'pick_file')],
      [text('Thanks.')],
    ])
    await person.sendMessage('go')
    await settle()
    expect(server.requests).toHaveLength(1)
    expect(await person.addToolResult({ toolCallId: 'c1', output: 'a.txt' })).toEqual({ status: 'waiting' })
    expect(await person.addToolResult({ toolCallId: 'c1', output: 'b.txt' })).toEqual({
      status: 'closed',
      reason: 'complete',
    })
    expect(await person.addToolResult({ toolCallId: 'nothing', output: 1 })).toEqual({ status: 'not-found' })
    expect(await person.addToolResult({ toolCallId: 'c2', error: 'The dialog was closed.' })).toEqual({
      status: 'sent',
    })
    expect(server.requests).toHaveLength(2)
    expect(toolMessages(server.requests[1]?.messages)).toMatchObject([
      { toolCallId: 'c1', content: 'a.txt' },
      { toolCallId: 'c2', error: 'The dialog was closed.' },
    ])
    expect(callOf(client, 'c2')).toMatchObject({
      state: 'error',
      error: { message: 'The dialog was closed.' },
    })
  })

  test('onToolCall only notifies: what it returns or throws changes nothing', async () => {
    const { ran, tools } = locateWith()
    const onToolCall = vi.fn(() => {
      throw new Error('careless')
    })
    const reported = vi.spyOn(console, 'error').mockImplementation(() => {})
    const { client, person } = await openChat(
      wire,
      [[call('c1', 'locate', { city: 'x' })], [text('Done.')]],
      { tools, onToolCall },
    )
    await person.sendMessage('go')
    await until(client, () => saidBy(client) === 'Done.')
    expect(onToolCall).toHaveBeenCalledWith(
      expect.objectContaining({ id: 'c1', name: 'locate', input: { city: 'x' } }),
    )
    expect(ran).toHaveBeenCalledTimes(1)
    reported.mockRestore()
  })
})

test('a tool that stops the chat while it runs leaves it ready', async () => {
  const { tools } = locateWith(() => person.stop())
  const { client, person, server, settle } = await openChat('in-process', [[call('c1', 'locate')]], { tools })
  await person.sendMessage('go')
  await settle()
  expect(client.getSnapshot().status).toBe('ready')
  expect(server.requests).toHaveLength(1)
})

test('stop in onFinish, before the tools of the run start: none starts and none is announced', async () => {
  const { ran, tools } = locateWith()
  const onToolCall = vi.fn()
  const { client, person, settle } = await openChat('in-process', [[call('c1', 'locate')]], {
    tools,
    onToolCall,
    onFinish: () => person.stop(),
  })
  await person.sendMessage('go')
  await settle()
  expect(ran).not.toHaveBeenCalled()
  expect(onToolCall).not.toHaveBeenCalled()
  expect(client.getSnapshot().status).toBe('ready')
})

test('with stop between two tools of one run the second does not start', async () => {
  const { ran, tools } = locateWith(() => person.stop())
  const { person, settle } = await openChat('in-process', [[call('c1', 'locate'), call('c2', 'locate')]], {
    tools,
  })
  await person.sendMessage('go')
  await settle()
  expect(ran).toHaveBeenCalledTimes(1)
})
