import { event, result, text, until } from '@countersign/testing'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ask, call, type Event, finish, resultOf, start, yes } from './foreign-server.js'
import { answersOf, failOnUnhandledRejections, openChat, parts, saidBy, wires } from './open-chat.js'

failOnUnhandledRejections()

// One id for several calls, as some providers give it: each call has its own arguments, request and result.

const seed = 20_261_122

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
    test(`${wire}: in each round, and in the next turn, the user is asked and the answer is sent`, async () => {
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
      await person.addToolApprovalResponse(yes('a3'))
      expect(answersOf(server)).toEqual([[], ['a1 yes'], ['a2 yes'], [], ['a3 yes']])
      const calls = parts(client).flatMap((part) =>
        part.type === 'tool-call' ? [[part.input, part.state, part.output]] : [],
      )
      expect(calls).toEqual([1, 2, 3].map((n) => [{ n }, 'complete', n]))
    })

    test(`${wire}: whatever rounds and turns there are, each question is asked once and its answer is sent (seed ${seed})`, async () => {
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

const asked = (n: number): Event[] => [...call('call_0', n), ask('call_0', `int-${n}`, n)]

test.each([undefined, true, false])(
  'a result belongs to the call whose answer the run carries, not to a later call with that id (answered meanwhile: %s)',
  async (approved) => {
    const { client, pending, calls, resume, approve } = await start(
      (input) => [...asked(1), finish(input, ['int-1', 'call_0'])],
      () => ['cut'],
      (input) => [...asked(2), finish(input, ['int-2', 'call_0'])],
      (input) => [resultOf('call_0', 'done 1'), finish(input)],
    )
    await approve('int-1')
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
    expect(resume().slice(4)).toEqual(approved === undefined ? [] : [[`int-2 ${approved ? 'yes' : 'no'}`]])
  },
)

test('if one request carries answers for several calls with one id, their results come in the order of the answers', async () => {
  const { client, calls, resume, approve, deny } = await start(
    (input) => [...asked(1), finish(input, ['int-1', 'call_0'])],
    () => ['cut'],
    (input) => [...asked(2), finish(input, ['int-2', 'call_0'])],
    () => ['cut'],
    (input) => [resultOf('call_0', 'done 1'), resultOf('call_0', '{"reason":"no"}', 'denied'), finish(input)],
  )
  await approve('int-1')
  await client.sendMessage('something else')
  await deny('int-2')
  await client.retry()
  expect(resume()[4]).toEqual(['int-1 yes', 'int-2 no'])
  expect(calls()).toMatchObject([{ state: 'complete', output: 'done 1' }, { state: 'denied' }])
})

test('a result is not that of an answer which is only in the history, if the run was sent another answer or ran another call', async () => {
  const { client, calls, resume, approve } = await start(
    (input) => [...asked(1), finish(input, ['int-1', 'call_0'])],
    () => ['cut'],
    (input) => [
      ...call('call_0', 5),
      resultOf('call_0', 'done 5'),
      ...asked(2),
      finish(input, ['int-2', 'call_0']),
    ],
    (input) => [resultOf('call_0', 'done 2'), finish(input)],
    (input) => [resultOf('call_0', 'done 1'), finish(input)],
  )
  await approve('int-1')
  await client.sendMessage('something else')
  await approve('int-2')
  await client.retry()
  expect(resume()).toEqual([[], ['int-1 yes'], [], ['int-2 yes'], ['int-1 yes']])
  expect(calls().map(({ input, output }) => [input, output])).toEqual([
    [{ n: 1 }, 'done 1'],
    [{ n: 5 }, 'done 5'],
    [{ n: 2 }, 'done 2'],
  ])
})

test('a second result with the id of an answered call does not end an open request', async () => {
  const { client, pending, warnings, approve } = await start(
    (input) => [...asked(1), finish(input, ['int-1', 'call_0'])],
    () => ['cut'],
    (input) => [...asked(2), finish(input, ['int-2', 'call_0'])],
    (input) => [resultOf('call_0', 'done 1'), resultOf('call_0', 'done again'), finish(input)],
  )
  await approve('int-1')
  await client.sendMessage('something else')
  await client.retry()
  expect(pending()).toEqual([['int-2', 'call_0', { n: 2 }]])
  expect(warnings).not.toEqual([])
})
