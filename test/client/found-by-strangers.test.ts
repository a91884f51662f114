import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { aiSdk } from '@countersign/ai-sdk'
import { ChatClient, type Connection, fetchServerSentEvents, stream } from '@countersign/client'
import type { AGUIEvent, RunAgentInput } from '@countersign/core'
import { event, finish, gated, passMacrotasks, refuse, result, text, until } from '@countersign/testing'
import fc from 'fast-check'
import { describe, expect, expectTypeOf, onTestFinished, test, vi } from 'vitest'
import { answersOf, failOnUnhandledRejections, openChat, parts, saidBy, stateOf, wires } from './open-chat.js'

failOnUnhandledRejections()

const seed = 20_261_122

/** A server that answers each request as told, in raw text, and keeps what it was asked. */
async function serve(...answers: ((response: ServerResponse, run: RunAgentInput) => void)[]) {
  const asked: { method: string; headers: Readonly<Record<string, unknown>>; run: RunAgentInput }[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const run: RunAgentInput = JSON.parse(body || '{}')
    asked.push({ method: request.method ?? '', headers: request.headers, run })
    const answer = answers[Math.min(asked.length, answers.length) - 1]
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    answer?.(response, run)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  return { asked, url: `http://127.0.0.1:${port}/chat` }
}

const frame = (one: unknown, id?: string) =>
  `${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(one)}\n\n`

const story = ({ threadId, runId }: RunAgentInput, words = 'Done.'): AGUIEvent[] => [
  { type: 'RUN_STARTED', threadId, runId },
  { type: 'TEXT_MESSAGE_START', messageId: `m-${runId}` },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: `m-${runId}`, delta: words },
  { type: 'TEXT_MESSAGE_END', messageId: `m-${runId}` },
  { type: 'RUN_FINISHED', threadId, runId },
]

const half = (run: RunAgentInput) => story(run, 'The capital of Fra').slice(0, 3)

describe('F26 a provider that repeats ids of calls', () => {
  const id = 'functions.send_mail:0'
  const asks = (n: number, parent: string | undefined): ReturnType<typeof event>[] => [
    event({
      type: 'TOOL_CALL_START',
      toolCallId: id,
      toolCallName: 'send_mail',
      ...(parent !== undefined && { parentMessageId: parent }),
    }),
    event({ type: 'TOOL_CALL_ARGS', toolCallId: id, delta: JSON.stringify({ n }) }),
    event({ type: 'TOOL_CALL_END', toolCallId: id }),
    event({
      type: 'CUSTOM',
      name: 'approval-requested',
      value: {
        toolCallId: id,
        toolName: 'send_mail',
        input: { n },
        approval: { id: `a${n}`, options: ['deny', 'once'] },
      },
    }),
  ]

  for (const wire of wires) {
    test(`${wire}: in each round, and in the next turn, the person is asked and the answer goes out`, async () => {
      const { client, person, server } = await openChat(wire, [
        [...asks(1, undefined)],
        [result(id, 1), ...asks(2, undefined)],
        [result(id, 2), text('Sent.')],
        [...asks(3, undefined)],
        [result(id, 3), text('Sent again.')],
      ])
      await person.sendMessage('go')
      for (const n of [1, 2]) {
        expect(client.getSnapshot().pendingApprovals.map(({ input }) => input)).toEqual([{ n }])
        await person.addToolApprovalResponse({ id: `a${n}`, approved: true })
      }
      await person.sendMessage('again')
      expect(client.getSnapshot()).toMatchObject({ status: 'awaiting-approval' })
      await person.addToolApprovalResponse({ id: 'a3', approved: true })
      expect(answersOf(server)).toEqual([[], ['a1 yes'], ['a2 yes'], [], ['a3 yes']])
      const calls = parts(client).flatMap((part) =>
        part.type === 'tool-call' ? [[part.input, part.state, part.output]] : [],
      )
      expect(calls).toEqual([1, 2, 3].map((n) => [{ n }, 'complete', n]))
    })

    test(`${wire}: whatever rounds and turns there are, each question is asked once and its answer goes out (seed ${seed})`, async () => {
      let questions = 0
      const where = fc.constantFrom(undefined, 'm1', 'own')
      const rounds = fc.array(
        fc.record({ calls: fc.array(where, { minLength: 1, maxLength: 3 }), speaks: fc.boolean() }),
        { minLength: 1, maxLength: 4 },
      )
      const property = fc.asyncProperty(rounds, async (plan) => {
        let n = 0
        const names: string[][] = plan.map(({ calls }) => calls.map(() => `a${++n}`))
        let m = 0
        const runs = plan.map(({ calls }, round) => [
          ...(round === 0
            ? []
            : (names[round - 1] ?? []).toReversed().map((_, at) =>
                event({
                  type: 'TOOL_CALL_RESULT',
                  messageId: `r${round}-${at}`,
                  toolCallId: id,
                  content: '"ok"',
                }),
              )),
          ...calls.flatMap((parent) => asks(++m, parent === 'own' ? `m-${round}` : parent)),
        ])
        const { client, person, server } = await openChat(wire, [...runs, [text('Done.')]])
        await person.sendMessage('go')
        for (const ids of names) {
          expect(
            client
              .getSnapshot()
              .pendingApprovals.map(({ approval }) => approval.id)
              .sort(),
          ).toEqual([...ids].sort())
          questions += ids.length
          await Promise.all(ids.map((one) => person.addToolApprovalResponse({ id: one, approved: true })))
        }
        expect(client.getSnapshot().status).toBe('ready')
        expect(answersOf(server).flat()).toEqual(names.flat().map((one) => `${one} yes`))
        client.dispose()
      })
      await fc.assert(property, { seed, numRuns: wire === 'sse' ? 15 : 60 })
      console.log(`${wire}, seed ${seed}: ${questions} questions`)
    })
  }

  test('two client tools of one id give each call its own output', async () => {
    const { client, person } = await openChat(
      'in-process',
      [
        [
          ...asks(1, 'm1').slice(0, 3),
          ...asks(2, 'm1').slice(0, 3),
          event({
            type: 'RUN_FINISHED',
            threadId: 't',
            runId: 'run-1',
            outcome: { type: 'success', pendingToolCallIds: [id] },
          }),
        ],
        [text('Done.')],
      ],
      {
        threadId: 't',
        generateId: (() => {
          let n = 0
          return () => (n++ === 1 ? 'run-1' : `id-${n}`)
        })(),
        tools: [
          {
            name: 'send_mail',
            description: '',
            location: 'client',
            input: { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } },
            execute: ({ n }: { n: number }) => n * 10,
          },
        ] as never,
      },
    )
    await person.sendMessage('go')
    await until(client, () => saidBy(client) === 'Done.')
    const calls = parts(client).flatMap((part) =>
      part.type === 'tool-call' ? [[part.input, part.output]] : [],
    )
    expect(calls).toEqual([
      [{ n: 1 }, 10],
      [{ n: 2 }, 20],
    ])
  })
})

test('F27 a failing setMessages keeps the messages, the open run, and what the next request says', async () => {
  const { client, person, server } = await openChat('in-process', [[text('Hello.')], [text('Again.')]])
  await person.sendMessage('go')
  const before = client.getSnapshot()
  for (const wrong of [() => [{ id: 'x' }], [{ id: 'x', role: 'user' }], undefined])
    expect(() => client.setMessages(wrong as never)).toThrow(
      expect.objectContaining({ code: 'invalid-argument' }),
    )
  expect(client.getSnapshot()).toBe(before)
  expect(client.getMessageIds()).toHaveLength(2)
  await person.sendMessage('and')
  expect(server.requests[1]?.messages).toHaveLength(3)
})

describe('F28 a run that broke off', () => {
  test('in the middle of a text: retry() neither shows nor sends the half', async () => {
    const { asked, url } = await serve(
      (response, run) => {
        response.write(
          half(run)
            .map((one) => frame(one))
            .join(''),
        )
        setTimeout(() => response.destroy(), 10)
      },
      (response, run) =>
        response.end(
          story(run, 'The capital of France is Paris.')
            .map((one) => frame(one))
            .join(''),
        ),
    )
    const client = new ChatClient({ connection: fetchServerSentEvents(url) })
    await client.sendMessage('go')
    expect(saidBy(client)).toBe('The capital of Fra')
    await client.retry()
    expect(saidBy(client)).toBe('The capital of France is Paris.')
    expect(asked[1]?.run.messages).toEqual(asked[0]?.run.messages)
  })

  test('over aiSdk({ resume }) made anew with every rendering is taken up, and not asked again', async () => {
    const chunk = (one: unknown) => frame(one)
    const begun = [
      { type: 'start', messageId: 'm1' },
      { type: 'start-step' },
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: 'One ' },
    ]
    const rest = [
      { type: 'text-delta', id: 't', delta: 'two.' },
      { type: 'text-end', id: 't' },
      { type: 'finish-step' },
      { type: 'finish' },
    ]
    const { asked, url } = await serve(
      (response) => {
        response.write(begun.map(chunk).join(''))
        setTimeout(() => response.destroy(), 10)
      },
      (response) => response.end([...begun, ...rest].map(chunk).join('')),
    )
    const client = new ChatClient({ connection: aiSdk({ api: url, resume: 'replay' }) })
    await client.sendMessage('go')
    client.setOptions({ connection: aiSdk({ api: url, resume: 'replay' }) })
    await client.retry()
    expect(asked.map(({ method }) => method)).toEqual(['POST', 'GET'])
    expect([saidBy(client), client.getSnapshot().status]).toEqual(['One two.', 'ready'])
  })
})

describe('F30 a stream as servers send it', () => {
  const open = async (write: (run: RunAgentInput) => string, type = 'text/event-stream') => {
    const server = createServer(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      response.writeHead(200, { 'content-type': type }).end(write(JSON.parse(body)))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const address = server.address()
    const client = new ChatClient({
      connection: fetchServerSentEvents(
        `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`,
      ),
    })
    await client.sendMessage('go')
    return client.getSnapshot()
  }
  const all = (run: RunAgentInput) => story(run).map((one) => frame(one))

  test('an event with empty or blank data is none', async () => {
    const snapshot = await open((run) => all(run).join('data:\n\ndata\n\nevent: ping\ndata:  \n\n'))
    expect(snapshot).toMatchObject({ status: 'ready', error: undefined })
  })

  test('[DONE] after a run that has finished is its end; before that the stream was cut', async () => {
    expect(await open((run) => `${all(run).join('')}data: [DONE]\n\n`)).toMatchObject({ status: 'ready' })
    const cut = await open((run) => `${all(run).slice(0, 3).join('')}data: [DONE]\n\n`)
    expect(cut).toMatchObject({ status: 'error', error: { code: 'truncated-stream' } })
  })

  test('the media type may be written in any case', async () => {
    expect(await open((run) => all(run).join(''), 'Text/Event-Stream; Charset=UTF-8')).toMatchObject({
      status: 'ready',
    })
    const page = await open(() => '<html>', 'text/html')
    expect(page).toMatchObject({ error: { code: 'not-an-event-stream' } })
  })

  for (const wire of wires) {
    test(`${wire}: RUN_ERROR keeps its reason, whatever comes after it`, async () => {
      for (const after of [
        [event({ type: 'RUN_FINISHED', threadId: 't', runId: 'r' })],
        [event({ type: 'nonsense?', at: 1 })],
        [finish()],
        [],
      ]) {
        const { client, person } = await openChat(wire, [
          [event({ type: 'RUN_ERROR', message: 'The model is overloaded.', code: 'overloaded' }), ...after],
        ])
        const sent = await person.sendMessage('go')
        expect(sent).toMatchObject({
          status: 'failed',
          error: { code: 'run-error', message: 'The model is overloaded.' },
        })
        expect(client.getSnapshot().error).toMatchObject({ code: 'run-error', data: { code: 'overloaded' } })
      }
    })
  }

  test('the id of the last event that has one is asked for, though later events of its read have none', async () => {
    const { asked, url } = await serve(
      (response, run) => {
        response.write(
          half(run)
            .map((one, n) => frame(one, n < 2 ? `e${n}` : undefined))
            .join(''),
        )
        setTimeout(() => response.destroy(), 10)
      },
      (response, run) =>
        response.end(
          story({ ...run, ...asked[0]?.run })
            .slice(3)
            .map((one) => frame(one))
            .join(''),
        ),
    )
    const client = new ChatClient({ connection: fetchServerSentEvents(url, { rejoin: true }) })
    await client.sendMessage('go')
    await client.retry()
    expect(asked.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, 'e1'])
    expect(client.getSnapshot().status).toBe('ready')
  })

  test('headers may be a Headers object: of the connection, of a function, of the client', async () => {
    const { asked, url } = await serve((response, run) =>
      response.end(
        story(run)
          .map((one) => frame(one))
          .join(''),
      ),
    )
    const own = new Headers({ Authorization: 'Bearer one' })
    const clients: [Connection, object][] = [
      [fetchServerSentEvents(url, { headers: own }), {}],
      [fetchServerSentEvents(url, { headers: async () => own }), {}],
      [fetchServerSentEvents(url), { headers: own }],
    ]
    for (const [connection, options] of clients)
      await new ChatClient({ connection, ...options }).sendMessage('go')
    expect(asked.map(({ headers }) => headers.authorization)).toEqual(clients.map(() => 'Bearer one'))
  })
})

for (const wire of wires) {
  test(`F33 ${wire}: regenerate() with an open question tells the server that nobody will answer it`, async () => {
    const { client, person, server } = await openChat(wire, [[gated(1)], [text('Another way.')]])
    await person.sendMessage('go')
    await person.regenerate()
    expect(answersOf(server)).toEqual([[], ['a1 cancelled']])
    expect(server.requests[1]?.resume?.[0]?.metadata).toEqual({ countersign: { token: 'token-a1' } })
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', pendingApprovals: [] })
  })

  test(`F52 ${wire}: who answers second sees what became of the call`, async () => {
    const { client, person } = await openChat(wire, [
      [gated(1)],
      [refuse('a1', 'approval-conflict', 'Too late.'), result('c1', 'sent'), text('Sent.')],
    ])
    await person.sendMessage('go')
    expect(await person.addToolApprovalResponse({ id: 'a1', approved: false })).toMatchObject({
      status: 'refused',
      code: 'approval-conflict',
    })
    expect(stateOf(client, 'c1')).toBe('complete')
    expect(saidBy(client)).toBe('Sent.')
  })
}

describe('F34 the edges of an application', () => {
  test('a source is not asked for more once the chat was stopped', async () => {
    let [pulled, afterStop] = [0, 0]
    let stopped = false
    const source = (run: RunAgentInput) => ({
      [Symbol.asyncIterator]: () => ({
        async next() {
          pulled++
          if (stopped) afterStop++
          // More than fits into one turn of the page, which gets its own then: the person stops the chat there.
          const [start, begin, delta] = half(run)
          return { done: false as const, value: [start, begin][pulled - 1] ?? delta }
        },
      }),
    })
    let turn: (() => void) | undefined
    const client = new ChatClient({ connection: stream((run) => source(run) as never) })
    const off = client.subscribe(() => {
      turn ??= () => {
        stopped = true
        client.stop()
      }
      if (saidBy(client) !== '' && !stopped) setTimeout(turn)
    })
    const sent = client.sendMessage('go')
    await until(client, () => stopped)
    off()
    await sent
    await passMacrotasks(4)
    expect([client.getSnapshot().isLoading, afterStop]).toEqual([false, 0])
  })

  test('onEvent narrows by type, and a CUSTOM event by its name', async () => {
    const names: string[] = []
    const onEvent = vi.fn()
    const { person } = await openChat(
      'in-process',
      [[event({ type: 'CUSTOM', name: 'chart', value: 1 }), event({ type: 'NEWS', at: 1 }), text('So.')]],
      {
        onEvent(given) {
          if (given.type === 'CUSTOM') {
            expectTypeOf(given.name).toEqualTypeOf<string>()
            if (given.name === 'chart') names.push(given.name)
          }
          expectTypeOf(given.type).toExtend<string>()
          onEvent(given.type)
        },
      },
    )
    await person.sendMessage('go')
    expect(names).toEqual(['chart'])
    expect(onEvent.mock.calls.flat()).toEqual(['CUSTOM', 'NEWS'])
  })
})
