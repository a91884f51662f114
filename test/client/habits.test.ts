import { type ChatActions, ChatClient, clientTool, stream } from '@countersign/client'
import { persistent } from '@countersign/client/persistence'
import {
  ask,
  call,
  custom,
  cut,
  event,
  finish,
  gated,
  hold,
  refuse,
  resolve,
  result,
  text,
  until,
} from '@countersign/testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import * as z from 'zod'
import { callOf, failOnUnhandledRejections, openChat, saidBy, stateOf, wires } from './open-chat.js'

failOnUnhandledRejections()

const own = { headers: { 'x-a': '1' }, body: { model: 'small' }, forwardedProps: { mood: 'kind' } }

/** A call with an approval request that allows edits. */
const editable = [call('c1', 'delete_file', { path: 'a.log' }), ask('a1', 'c1', { allowEdits: true })]

/** What the options of one request add to its body. */
const extras = (request: object | undefined) => {
  const { model, forwardedProps } = { model: undefined, forwardedProps: undefined, ...request }
  return { model, forwardedProps }
}

describe.each(wires)('%s', (wire) => {
  test('H1 headers, body and forwardedProps of one send go with its request and no other', async () => {
    const { client, person, server } = await openChat(wire, [[text('One.')], [text('Two.')]], {
      forwardedProps: { app: 'a' },
    })
    await person.sendMessage('go', own)
    await person.sendMessage('and')
    expect(server.requests.map(extras)).toEqual([
      { model: 'small', forwardedProps: { app: 'a', mood: 'kind' } },
      { model: undefined, forwardedProps: { app: 'a' } },
    ])
    expect(saidBy(client)).toBe('One. Two.')
  })

  test('H1 a queued message keeps its options until it is sent, and retry() sends them again', async () => {
    const { client, person, server } = await openChat(wire, [
      [text('One.'), hold('end')],
      [text('half'), cut()],
      [text('Two.')],
    ])
    const first = person.sendMessage('go')
    await until(client, ({ status }) => status === 'streaming')
    expect(await person.sendMessage('and', own)).toMatchObject({ status: 'queued' })
    server.release('end')
    await first
    await until(client, ({ status }) => status === 'error')
    await person.retry()
    expect(server.requests.map(({ forwardedProps }) => forwardedProps)).toEqual([
      undefined,
      own.forwardedProps,
      own.forwardedProps,
    ])
  })

  test('H1 regenerate and each kind of answer have options of their own', async () => {
    const { person, server } = await openChat(wire, [gated(1), [resolve(), text('Done.')], [text('Anew.')]])
    await person.sendMessage('go')
    await person.addToolApprovalResponse({ id: 'a1', approved: true, options: own })
    await person.regenerate({}, { body: { model: 'large' } })
    expect(server.requests.map(extras)).toEqual([
      { model: undefined, forwardedProps: undefined },
      { model: 'small', forwardedProps: own.forwardedProps },
      { model: 'large', forwardedProps: undefined },
    ])
  })

  test('H1 the members of RunAgentInput cannot be replaced by body', async () => {
    const { person, server } = await openChat(wire, [[text('Hi.')]], { threadId: 't1' })
    await person.sendMessage('go', { body: { threadId: 'other', messages: [] } })
    expect(server.requests[0]).toMatchObject({ threadId: 't1', messages: [{ content: 'go' }] })
  })

  test('H3 a message that replaces an earlier one, by messageId, drops it and what followed it', async () => {
    const { client, person, server } = await openChat(wire, [
      [text('One.')],
      [text('Two.')],
      [text('Other.')],
      [text('Same.')],
    ])
    await person.sendMessage({ id: 'u1', text: 'one' })
    await person.sendMessage({ id: 'u2', text: 'two' })
    await person.sendMessage({ messageId: 'u1', text: 'another one' })
    expect([saidBy(client, 'user'), saidBy(client)]).toEqual(['another one', 'Other.'])
    expect(server.requests[2]?.messages.map(({ role }) => role)).toEqual(['user'])
    const [replaced] = client.getSnapshot().messages
    // Under its own id, if that is given.
    await person.sendMessage({ messageId: `${replaced?.id}`, id: `${replaced?.id}`, text: 'the same' })
    expect([saidBy(client, 'user'), client.getSnapshot().messages[0]?.id]).toEqual(['the same', replaced?.id])
    expect(await person.sendMessage({ messageId: 'u1', text: 'gone' })).toMatchObject({
      status: 'refused',
      error: { code: 'invalid-argument' },
    })
  })

  test('H4 H7 a message has the id and the order of parts that the application gives', async () => {
    const { client, person, server } = await openChat(wire, [[text('Hi.')]])
    const image = {
      type: 'file',
      media: 'image',
      source: { type: 'url', value: 'https://example.com/a.png' },
    } as const
    await person.sendMessage({ id: 'mine', parts: ['before', image, 'after'] })
    expect(client.getMessage('mine')?.parts.map(({ type }) => type)).toEqual(['text', 'file', 'text'])
    expect(server.requests[0]?.messages[0]).toMatchObject({
      id: 'mine',
      content: [{ text: 'before' }, { type: 'image' }, { text: 'after' }],
    })
  })

  test('H4 an id that a message has already is refused', async () => {
    const { person, server } = await openChat(wire, [[text('Hi.')]])
    await person.sendMessage({ id: 'mine', text: 'go' })
    expect(await person.sendMessage({ id: 'mine', text: 'again' })).toMatchObject({
      status: 'refused',
      error: { code: 'invalid-argument' },
    })
    expect(server.requests).toHaveLength(1)
  })

  test('H4 an id that a queued message has already is refused, also while the conversation loads', async () => {
    const { person } = await openChat(wire, [[hold()]])
    const refused = { status: 'refused', error: { code: 'invalid-argument' } }
    void person.sendMessage('go')
    expect(await person.sendMessage({ id: 'mine', text: 'one' })).toEqual({ status: 'queued', id: 'mine' })
    expect(await person.sendMessage({ id: 'mine', text: 'two' })).toMatchObject(refused)
    const loading = new ChatClient({
      connection: stream(async function* () {}),
      threadId: 't',
      persistence: persistent({ load: async () => undefined, save: async () => {}, remove: async () => {} }),
    })
    void loading.sendMessage({ id: 'mine', text: 'one' })
    expect(await loading.sendMessage({ id: 'mine', text: 'two' })).toMatchObject(refused)
    loading.dispose()
  })

  test('H5 append adds a message of any role and requests a reply', async () => {
    const { client, person, server } = await openChat(wire, [[text('Hi.')], [text('Yes.')]])
    await person.append({ role: 'system', parts: [{ type: 'text', text: 'Be brief.' }] })
    await person.append({ id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Ok?' }] })
    expect(server.requests[1]?.messages.map(({ role }) => role)).toEqual(['system', 'assistant', 'user'])
    expect(client.getMessage('u1')?.createdAt).toBeTypeOf('number')
    expect(await person.append({ role: 'nobody', parts: [] } as never)).toMatchObject({ status: 'refused' })
  })

  test('H6 sendMessage without a message requests a reply to the conversation as it is', async () => {
    const { client, person, server } = await openChat(wire, [[text('Hi.')], [text('More.')]])
    await person.sendMessage('go')
    expect(await person.sendMessage()).toEqual({ status: 'sent' })
    expect(server.requests[1]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
    expect(saidBy(client)).toContain('More.')
  })

  test('H6 it is refused while a run is open, and while a request waits for an answer', async () => {
    const { client, person, server } = await openChat(wire, [[hold('go'), call('c1', 'rm'), ask('a1', 'c1')]])
    const first = person.sendMessage('go')
    expect(await person.sendMessage()).toMatchObject({ status: 'refused', error: { code: 'chat-busy' } })
    server.release('go')
    await first
    expect(await person.sendMessage()).toMatchObject({ error: { code: 'pending-approvals' } })
    expect(stateOf(client, 'c1')).toBe('approval-requested')
    expect(server.requests).toHaveLength(1)
  })

  test('H8 setMessages takes a function of the present messages', async () => {
    const { client, person } = await openChat(wire, [[text('Hi.')]])
    await person.sendMessage('go')
    person.setMessages((before) => before.slice(0, 1))
    expect(client.getSnapshot().messages).toMatchObject([{ role: 'user' }])
  })

  test('H10 onFinish and the snapshot have the usage, the outcome and the result of the run', async () => {
    const finished: unknown[] = []
    const usage = [{ model: 'small', inputTokens: 3, outputTokens: 4 }]
    const { client, person } = await openChat(
      wire,
      [[text('Oslo.'), finish({ usage, result: { city: 'Oslo' } })], [cut()], gated(1)],
      { onFinish: (info) => finished.push(info) },
    )
    expect(client.getSnapshot().lastRun).toBeUndefined()
    await person.sendMessage('go')
    const last = { outcome: 'success', reason: 'stop', result: { city: 'Oslo' } }
    expect(finished).toEqual([expect.objectContaining({ ...last, usage })])
    expect(client.getSnapshot()).toMatchObject({ usage, lastRun: last })
    const { lastRun } = client.getSnapshot()
    client.setState({ n: 1 })
    expect(client.getSnapshot().lastRun).toBe(lastRun)
    await person.sendMessage('again')
    expect(client.getSnapshot()).toMatchObject({ status: 'error', lastRun: undefined })
    await person.sendMessage('again')
    expect(client.getSnapshot().lastRun).toMatchObject({ outcome: 'interrupt' })
    expect(finished).toHaveLength(2)
    client.clear()
    expect(client.getSnapshot()).toMatchObject({ lastRun: undefined, usage: [] })
  })

  test('H11 the part of a running call shows what its tool reported last, until the call has an outcome', async () => {
    const report = (data: unknown) => custom('tool-progress', { toolCallId: 'c1', toolName: 'copy', data })
    const { client, person, server } = await openChat(wire, [
      [call('c1', 'copy', {}), report({ done: 1 }), report({ done: 2 }), hold('end'), result('c1', 'ok')],
    ])
    const sent = person.sendMessage('go')
    await until(client, () => stateOf(client, 'c1') === 'input-complete')
    await until(client, () => JSON.stringify(callOf(client, 'c1').progress) === '{"done":2}')
    server.release('end')
    await sent
    expect(callOf(client, 'c1')).toMatchObject({ state: 'complete' })
    expect(callOf(client, 'c1').progress).toBeUndefined()
  })

  test('H13 onData hears of each data part and of its changes', async () => {
    const seen: unknown[] = []
    const activity = (content: object) =>
      event({ type: 'ACTIVITY_SNAPSHOT', messageId: 'd1', activityType: 'chart', content, replace: true })
    const { person } = await openChat(wire, [[activity({ y: 1 }), activity({ y: 2 }), text('Done.')]], {
      onData: ({ name, data, messageId }) => seen.push([messageId, name, data]),
    })
    await person.sendMessage('go')
    expect(seen).toEqual([
      ['d1', 'chart', { y: 1 }],
      ['d1', 'chart', { y: 2 }],
    ])
  })

  test('H13 clearError removes the error and keeps the messages', async () => {
    const { client, person } = await openChat(wire, [[text('half'), cut()]])
    await person.sendMessage('go')
    expect(client.getSnapshot().status).toBe('error')
    person.clearError()
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
    expect(client.getSnapshot().messages.length).toBeGreaterThan(1)
  })

  test('H13 onStop is called if stop() has ended something', async () => {
    let stops = 0
    const { client, person } = await openChat(wire, [[text('One.'), hold('end')]], { onStop: () => stops++ })
    person.stop()
    expect(stops).toBe(0)
    void person.sendMessage('go')
    await until(client, ({ status }) => status === 'streaming')
    person.stop()
    expect(stops).toBe(1)
  })

  test('H14 the initial shared state and what setState makes of it go with the request', async () => {
    const { client, person, server } = await openChat(wire, [[text('Hi.')], [text('Hi.')]], {
      initialState: { count: 1 },
    })
    expect(client.getSnapshot().state).toEqual({ count: 1 })
    await person.sendMessage('go')
    person.setState((before: { count: number }) => ({ count: before.count + 1 }))
    expect(client.getSnapshot().state).toEqual({ count: 2 })
    await person.sendMessage('and')
    expect(server.requests.map(({ state }) => state)).toEqual([{ count: 1 }, { count: 2 }])
    expect(() => person.setState(() => 1n)).toThrow(expect.objectContaining({ code: 'invalid-argument' }))
  })

  test('H15 the context option goes with every request', async () => {
    const context = [{ description: 'The page', value: '/orders' }]
    const { client, person, server } = await openChat(wire, [[text('Hi.')], [text('Hi.')]], { context })
    await person.sendMessage('go')
    client.setOptions({ context: [] })
    await person.sendMessage('and')
    expect(server.requests.map((request) => request.context)).toEqual([context, []])
  })

  test('H16 onToolCall hears once of a call for which there is no tool, and addToolResult answers it', async () => {
    const calls: unknown[] = []
    const { client, person, server } = await openChat(wire, [[call('c1', 'locate', {})], [text('There.')]], {
      onToolCall: ({ id, name }) => {
        calls.push(name)
        void client.addToolResult({ toolCallId: id, output: { lat: 1 } })
      },
    })
    await person.sendMessage('go', { until: 'turn' })
    await server.request(2)
    await until(client, ({ isLoading }) => !isLoading)
    expect(calls).toEqual(['locate'])
    expect(callOf(client, 'c1')).toMatchObject({ state: 'complete', output: { lat: 1 } })
  })

  test('H16 a client tool gets toolContext', async () => {
    const seen: unknown[] = []
    const tool = clientTool({
      name: 'locate',
      description: '',
      input: z.object({}),
      execute: (_, { context }) => {
        seen.push(context)
        return 1
      },
    })
    const { person } = await openChat(wire, [[call('c1', 'locate', {})], [text('There.')]], {
      tools: [tool],
      toolContext: { user: 'ann' },
    })
    await person.sendMessage('go', { until: 'turn' })
    expect(seen).toEqual([{ user: 'ann' }])
  })

  test('H17 with autoContinue: false an answer waits, which is a state and no error, and sendMessage() sends it', async () => {
    const { client, person, server, settle } = await openChat(wire, [gated(1), [resolve(), text('Done.')]], {
      autoContinue: false,
    })
    await person.sendMessage('go')
    expect(client.getSnapshot().canContinue).toBe(false)
    expect(await person.addToolApprovalResponse({ id: 'a1', approved: true })).toEqual({ status: 'waiting' })
    await settle()
    expect(server.requests).toHaveLength(1)
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', canContinue: true, error: undefined })
    expect(await person.sendMessage()).toEqual({ status: 'sent' })
    expect(client.getSnapshot().canContinue).toBe(false)
    expect(saidBy(client)).toBe('Done.')
  })

  test('H18 with interrupt a message ends the open run and is sent at once', async () => {
    const { client, person, server } = await openChat(wire, [[text('One.'), hold('end')], [text('Two.')]], {
      whenBusy: 'interrupt',
    })
    const first = person.sendMessage('go')
    await until(client, ({ status }) => status === 'streaming')
    expect(await person.sendMessage('no, this')).toEqual({ status: 'sent' })
    expect(await first).toEqual({ status: 'stopped' })
    expect(server.requests).toHaveLength(2)
    expect(client.getSnapshot().queue).toEqual([])
  })

  test.each<[string, (person: ChatActions) => unknown]>([
    ['a message', (person) => person.sendMessage('no, this')],
    ['regenerate()', (person) => person.regenerate()],
    ['setMessages()', (person) => person.setMessages([])],
  ])('H13, H18 onStop is called if %s ends the open run, and not if none is open', async (_, act) => {
    let stops = 0
    const { client, person } = await openChat(wire, [[text('One.'), hold('end')], [text('Two.')]], {
      whenBusy: 'interrupt',
      onStop: () => stops++,
    })
    const first = person.sendMessage('go')
    await until(client, ({ status }) => status === 'streaming')
    const second = act(person)
    expect(await first).toEqual({ status: 'stopped' })
    await second
    expect(stops).toBe(1)
    await act(person)
    expect(stops).toBe(1)
  })

  test('H18 with drop a message is refused while a run is open', async () => {
    const { client, person, server } = await openChat(wire, [[text('One.'), hold('end')], [text('Two.')]], {
      whenBusy: 'drop',
    })
    const first = person.sendMessage('go')
    await until(client, ({ status }) => status === 'streaming')
    expect(await person.sendMessage('and')).toMatchObject({ status: 'refused', error: { code: 'chat-busy' } })
    server.release('end')
    expect(await first).toEqual({ status: 'sent' })
    expect(await person.sendMessage('and')).toEqual({ status: 'sent' })
  })

  test('H18 no more than maxQueued messages are queued', async () => {
    const { client, person } = await openChat(wire, [[text('One.'), hold('end')]], { maxQueued: 1 })
    void person.sendMessage('go')
    await until(client, ({ status }) => status === 'streaming')
    expect(await person.sendMessage('two')).toMatchObject({ status: 'queued' })
    expect(await person.sendMessage('three')).toMatchObject({
      status: 'refused',
      error: { code: 'queue-full' },
    })
    expect(client.getSnapshot().queue).toHaveLength(1)
  })

  test('H18 sendMessage() sends what stop() held', async () => {
    const { client, person, server } = await openChat(wire, [[text('One.'), hold('end')], [text('Two.')]])
    void person.sendMessage('go')
    await until(client, ({ status }) => status === 'streaming')
    await person.sendMessage('two')
    person.stop()
    expect(client.getSnapshot().queue).toHaveLength(1)
    expect(await person.sendMessage()).toEqual({ status: 'sent' })
    expect(client.getSnapshot().queue).toEqual([])
    expect(server.requests[1]?.messages.at(-1)).toMatchObject({ content: 'two' })
  })

  test('H19 a request is cancelled without an answer, and the server learns of it with the next request', async () => {
    const { client, person, server, settle } = await openChat(wire, [gated(1), [text('As you like.')]])
    await person.sendMessage('go')
    expect(await person.addToolApprovalResponse({ id: 'a1', cancel: true })).toEqual({ status: 'waiting' })
    await settle()
    expect(callOf(client, 'c1')).toMatchObject({ state: 'cancelled' })
    expect(callOf(client, 'c1').approval?.approved).toBeUndefined()
    expect(server.requests).toHaveLength(1)
    await person.sendMessage('something else')
    expect(server.requests[1]?.resume).toMatchObject([{ interruptId: 'a1', status: 'cancelled' }])
  })

  test('H19 an answer that was not sent is taken back, and another one counts', async () => {
    const { client, person, server } = await openChat(wire, [
      [gated(1), gated(2)],
      [resolve(), text('Done.')],
    ])
    await person.sendMessage('go')
    await person.addToolApprovalResponse({ id: 'a1', approved: true })
    expect(await person.withdrawApprovalResponse('a1')).toBe(true)
    expect(client.getSnapshot().pendingApprovals.map(({ id }) => id)).toEqual(['c1', 'c2'])
    await person.addToolApprovalResponse({ id: 'a1', approved: false })
    await person.addToolApprovalResponse({ id: 'a2', approved: true })
    expect(server.requests[1]?.resume?.map(({ payload }) => payload?.approved).toSorted()).toEqual([
      false,
      true,
    ])
  })

  test('H19 an answer that a request has carried cannot be taken back', async () => {
    const { client, person, server } = await openChat(wire, [gated(1), [hold('end'), resolve()]])
    await person.sendMessage('go')
    const answer = person.addToolApprovalResponse({ id: 'a1', approved: true })
    expect(await person.withdrawApprovalResponse('a1')).toBe(false)
    server.release('end')
    expect(await answer).toEqual({ status: 'sent' })
    expect(await person.withdrawApprovalResponse('a1')).toBe(false)
    expect(await person.withdrawApprovalResponse('unknown')).toBe(false)
    expect(stateOf(client, 'c1')).toBe('complete')
  })

  test('H19 several answers at once: one notification before the request, and one request', async () => {
    const { client, person, server } = await openChat(wire, [
      [gated(1), gated(2)],
      [resolve(), text('Done.')],
    ])
    await person.sendMessage('go')
    const seen: number[] = []
    client.subscribe(() => seen.push(client.getSnapshot().pendingApprovals.length))
    const results = await person.addToolApprovalResponses([
      { id: 'a1', approved: true },
      { id: 'a2', approved: false },
      { id: 'a3', approved: true },
    ])
    expect(results).toEqual([{ status: 'sent' }, { status: 'sent' }, { status: 'not-found' }])
    expect(new Set(seen)).toEqual(new Set([0]))
    expect(server.requests).toHaveLength(2)
  })

  test("H20 until: 'turn' waits for client tools and what follows them", async () => {
    const tool = clientTool({ name: 'locate', description: '', input: z.object({}), execute: async () => 1 })
    const { client, person, server } = await openChat(wire, [[call('c1', 'locate', {})], [text('There.')]], {
      tools: [tool],
    })
    expect(await person.sendMessage('go', { until: 'turn' })).toEqual({ status: 'sent' })
    expect(server.requests).toHaveLength(2)
    expect(saidBy(client)).toBe('There.')
  })

  test('H21 the status shows a client tool at work', async () => {
    let found = (_: string) => {}
    const promise = new Promise<string>((done) => {
      found = done
    })
    const tool = clientTool({ name: 'locate', description: '', input: z.object({}), execute: () => promise })
    const { client, person } = await openChat(wire, [[call('c1', 'locate')], [text('There.')]], {
      tools: [tool],
    })
    const statuses: string[] = ['ready']
    client.subscribe(() => {
      const { status } = client.getSnapshot()
      if (status !== statuses.at(-1)) statuses.push(status)
    })
    const sent = person.sendMessage('go', { until: 'turn' })
    await until(client, () => stateOf(client, 'c1') === 'executing')
    expect(client.getSnapshot()).toMatchObject({ status: 'executing', isLoading: true })
    found('Lisbon')
    await sent
    expect(statuses).toEqual([
      'ready',
      'submitted',
      'streaming',
      'executing',
      'submitted',
      'streaming',
      'ready',
    ])
  })

  test('H21 the status shows an interrupt that waits; an approval request and an error go before it', async () => {
    const question = { id: 'q1', reason: 'input_required', message: 'Which folder?' }
    const { client, person } = await openChat(wire, [
      [call('c1', 'delete_file'), ask('a1', 'c1'), finish({ interrupts: [question] })],
      [cut()],
      [resolve(), text('Thanks.')],
    ])
    const status = () => client.getSnapshot().status
    await person.sendMessage('go')
    expect(status()).toBe('awaiting-approval')
    await person.addToolApprovalResponse({ id: 'a1', approved: true })
    expect([status(), client.getSnapshot().isLoading]).toEqual(['awaiting-answer', false])
    await person.respondToInterrupt({ id: 'q1', payload: { folder: 'logs' } })
    expect(status()).toBe('error')
    await person.retry()
    expect(status()).toBe('ready')
  })

  test('H28 an edit that does not fit the schema which the page has stays here, with its issues by field, and the request open', async () => {
    const input = z.object({ path: z.string().min(3), options: z.object({ depth: z.int() }).optional() })
    const own = clientTool({ name: 'delete_file', description: '', input, execute: () => 'gone' })
    for (const options of [{ serverTools: [{ name: 'delete_file', input }] }, { tools: [own] }]) {
      const { client, person, server } = await openChat(wire, [editable, [resolve(), text('Done.')]], options)
      await person.sendMessage('go')
      const answer = (edit: unknown) =>
        person.addToolApprovalResponse({ id: 'a1', approved: true, input: edit })
      const result = await answer({ path: '', options: { depth: 0.5 } })
      expect(result).toEqual({
        status: 'refused',
        code: 'approval-edit-invalid',
        reason: expect.stringMatching(/^path: .+; options\.depth: .+/),
        issues: [
          { path: ['path'], message: expect.any(String) },
          { path: ['options', 'depth'], message: expect.any(String) },
        ],
      })
      expect(client.getSnapshot()).toMatchObject({ status: 'awaiting-approval', canContinue: false })
      expect([server.requests.length, callOf(client, 'c1').approval?.problem]).toEqual([1, undefined])
      expect(await answer({ path: 'logs/old' })).toEqual({ status: 'sent' })
      expect(server.requests[1]?.resume?.[0]?.payload).toMatchObject({ editedArgs: { path: 'logs/old' } })
    }
  })

  test('H28 what the page cannot judge goes to the server: no schema, an asynchronous one, or one that throws', async () => {
    const asynchronous = z.object({ path: z.string().refine(async () => false) })
    const broken = {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate() {
          throw new Error('A broken schema.')
        },
      },
    }
    const name = 'delete_file'
    const reported: unknown[] = []
    vi.stubGlobal('reportError', (error: unknown) => reported.push(error))
    onTestFinished(() => {
      vi.unstubAllGlobals()
    })
    for (const serverTools of [[], [{ name, input: asynchronous }], [{ name, input: broken }]]) {
      const { client, person } = await openChat(
        wire,
        [editable, [refuse('a1', 'approval-edit-invalid', 'It does not fit.')], [resolve(), text('Done.')]],
        { serverTools },
      )
      await person.sendMessage('go')
      const answer = { id: 'a1', approved: true, input: { path: '' } }
      // The server checks in any case; the request is open again.
      expect(await person.addToolApprovalResponse(answer)).toMatchObject({ code: 'approval-edit-invalid' })
      expect(client.getSnapshot().status).toBe('awaiting-approval')
      expect(await person.addToolApprovalResponse({ ...answer, input: { path: 'a' } })).toEqual({
        status: 'sent',
      })
    }
    expect(reported).toHaveLength(2)
  })

  test('H28 a denial, and an approval without an edit, are checked by no schema', async () => {
    const nothing = { name: 'delete_file', input: z.never() }
    const { person, server } = await openChat(
      wire,
      [
        [...gated(2), ...editable],
        [resolve(), text('Done.')],
      ],
      { serverTools: [nothing] },
    )
    await person.sendMessage('go')
    const results = await person.addToolApprovalResponses([
      { id: 'a1', approved: false, input: { path: '' } },
      { id: 'a2', approved: true },
    ])
    expect(results).toEqual([{ status: 'sent' }, { status: 'sent' }])
    expect(server.requests).toHaveLength(2)
  })
})
