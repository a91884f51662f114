import type { ChatClient, Connection } from '@countersign/client'
import { checkResponse } from '@countersign/client/response-schema'
import { CountersignError, type Interrupt } from '@countersign/core'
import {
  call,
  custom,
  cut,
  end,
  finish,
  hold,
  passMacrotasks,
  type RunScript,
  result,
  scriptedConnection,
  text,
  until,
} from '@countersign/testing'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { failOnUnhandledRejections, openChat, saidBy, stateOf, wires } from './open-chat.js'

failOnUnhandledRejections()

const folderSchema = {
  type: 'object',
  properties: {
    folder: { type: 'string', minLength: 1, title: 'Folder' },
    depth: { type: 'integer', minimum: 0, maximum: 9 },
    kind: { type: 'string', enum: ['copy', 'move'] },
    keep: { type: 'boolean' },
  },
  required: ['folder'],
  additionalProperties: false,
}

const question = (more: Partial<Interrupt> = {}): Interrupt => ({
  id: 'q1',
  reason: 'input_required',
  message: 'Which folder?',
  responseSchema: folderSchema,
  ...more,
})

const asks = (...interrupts: Interrupt[]): RunScript => [text('One question.'), finish({ interrupts })]

for (const wire of wires) {
  test(`${wire}: an interrupt offers its schema, refuses an answer that does not fit, and submits one that does`, async () => {
    const { client, person, server } = await openChat(wire, [asks(question()), [text('Thanks.')]], {
      checkResponse,
    })
    await person.sendMessage('go')
    expect(client.getSnapshot()).toMatchObject({
      status: 'awaiting-answer',
      interrupts: [{ id: 'q1', message: 'Which folder?', responseSchema: folderSchema }],
    })
    const refusals: [unknown, string][] = [
      [undefined, '"" must be of the type object.'],
      ['logs', '"" must be of the type object.'],
      [{}, '"" needs "folder".'],
      [{ folder: '' }, '"/folder" must have a length of at least 1.'],
      [{ folder: 'a', depth: 1.5 }, '"/depth" must be of the type integer.'],
      [{ folder: 'a', kind: 'delete' }, '"/kind" is none of the choices.'],
      [{ folder: 'a', 'x/y': 1 }, '"/x~1y" is not asked for.'],
    ]
    for (const [payload, reason] of refusals)
      expect(await person.respondToInterrupt({ id: 'q1', payload })).toEqual({
        status: 'refused',
        code: 'approval-malformed',
        reason,
      })
    expect(await client.respondToInterrupt({ id: 'q1', payload: { folder: 1n } })).toMatchObject({
      status: 'refused',
      reason: expect.stringMatching(
        /^What was given has no JSON form \(.*BigInt.*\)\. Give plain objects and lists\.$/,
      ),
    })
    expect(server.requests).toHaveLength(1)
    expect(client.getSnapshot().interrupts).toHaveLength(1)
    const payload = { folder: 'logs', depth: 2, kind: 'copy' }
    expect(await person.respondToInterrupt({ id: 'q1', payload })).toEqual({ status: 'sent' })
    expect(server.requests[1]?.resume).toEqual([{ interruptId: 'q1', status: 'resolved', payload }])
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', interrupts: [] })
    expect(saidBy(client)).toBe('One question. Thanks.')
  })
}

test('an interrupt that is declined is sent as cancelled, without a payload', async () => {
  const { person, server } = await openChat('in-process', [asks(question()), [text('Well.')]])
  await person.sendMessage('go')
  expect(await person.respondToInterrupt({ id: 'q1', cancel: true })).toEqual({ status: 'sent' })
  expect(server.requests[1]?.resume).toEqual([{ interruptId: 'q1', status: 'cancelled' }])
})

test('an interrupt that has expired can only be cancelled', async () => {
  const expiresAt = '2026-01-01T00:00:00Z'
  const { client, person, server } = await openChat(
    'in-process',
    [asks(question({ expiresAt })), [text('Ok.')]],
    {
      now: () => Date.parse(expiresAt),
    },
  )
  await person.sendMessage('go')
  const given = { id: 'q1', payload: { folder: 'logs' } }
  expect(await person.respondToInterrupt(given)).toEqual({ status: 'expired' })
  expect(client.getSnapshot().interrupts).toHaveLength(1)
  expect(await person.respondToInterrupt({ id: 'q1', cancel: true })).toEqual({ status: 'sent' })
  expect(server.requests[1]?.resume).toEqual([{ interruptId: 'q1', status: 'cancelled' }])
})

test('what is submitted is the answer as it was given, whatever the page does with its object afterwards', async () => {
  const runs = [asks(question(), question({ id: 'q2', responseSchema: { type: 'boolean' } })), [text('Ok.')]]
  const { person, server } = await openChat('in-process', runs, { checkResponse })
  await person.sendMessage('go')
  const payload = { folder: 'logs' }
  expect(await person.respondToInterrupt({ id: 'q1', payload })).toEqual({ status: 'waiting' })
  payload.folder = ''
  expect(await person.respondToInterrupt({ id: 'q2', payload: false })).toEqual({ status: 'sent' })
  expect(server.requests[1]?.resume).toMatchObject([{ payload: { folder: 'logs' } }, { payload: false }])
})

test('an interrupt that wants input for a tool call is no approval of that call', async () => {
  const runs = [
    [call('c1', 'archive'), finish({ interrupts: [question({ toolCallId: 'c1' })] })],
    [result('c1', 'archived'), text('Done.')],
  ]
  const { client, person, server } = await openChat('in-process', runs, { checkResponse })
  await person.sendMessage('go')
  expect(client.getSnapshot().pendingApprovals).toEqual([])
  expect(client.getSnapshot().interrupts).toMatchObject([{ id: 'q1', toolCallId: 'c1' }])
  await person.respondToInterrupt({ id: 'q1', payload: { folder: 'logs' } })
  expect(server.requests).toHaveLength(2)
  expect(stateOf(client, 'c1')).toBe('complete')
})

test('without checkResponse no answer to a schema is sent, and the refusal names the option and its entry; a denial always is', async () => {
  const { client, person, server } = await openChat('in-process', [
    asks(question(), { id: 'q2', reason: 'input_required', message: 'Anything else?' }),
    [text('Ok.')],
  ])
  await person.sendMessage('go')
  expect(await person.respondToInterrupt({ id: 'q1', payload: { folder: 'logs' } })).toEqual({
    status: 'refused',
    code: 'approval-malformed',
    reason: expect.stringMatching(/`checkResponse`.*"@countersign\/client\/response-schema"/),
  })
  expect(client.getSnapshot().interrupts).toHaveLength(2)
  expect(await person.respondToInterrupt({ id: 'q2', payload: 'anything' })).toEqual({ status: 'waiting' })
  expect(await person.respondToInterrupt({ id: 'q1', cancel: true })).toEqual({ status: 'sent' })
  expect(server.requests[1]?.resume).toEqual([
    { interruptId: 'q2', status: 'resolved', payload: 'anything' },
    { interruptId: 'q1', status: 'cancelled' },
  ])
})

test('a checkResponse of the application judges in the place of the schema', async () => {
  const schema = { type: 'object', dependentRequired: { from: ['to'] } }
  const runs = [asks(question({ responseSchema: schema })), [text('Ok.')]]
  const plain = await openChat('in-process', runs, { checkResponse })
  await plain.person.sendMessage('go')
  expect(await plain.person.respondToInterrupt({ id: 'q1', payload: {} })).toMatchObject({
    status: 'refused',
    reason: '"" cannot be checked for "dependentRequired"; check it by a checkResponse of your own.',
  })
  const { person, server } = await openChat('in-process', runs, {
    checkResponse: (payload, { responseSchema }) =>
      responseSchema === undefined || 'from' in Object(payload) ? 'No from.' : undefined,
  })
  await person.sendMessage('go')
  expect(await person.respondToInterrupt({ id: 'q1', payload: { from: 1 } })).toMatchObject({
    status: 'refused',
    reason: 'No from.',
  })
  expect(await person.respondToInterrupt({ id: 'q1', payload: {} })).toEqual({ status: 'sent' })
  expect(server.requests).toHaveLength(2)
})

/** Schemas of forms, with every word that is judged. */
const names = fc.constantFrom('a', 'b', '__proto__', 'x/y')
const numbers = fc.oneof(fc.integer({ min: -3, max: 6 }), fc.constantFrom(0.5, 2.5))
const texts = fc.constantFrom('', 'a', 'ab', 'abc', 'a@b.example', '2026-11-22', '\u{1f600}')
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 2 },
    numbers,
    texts,
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.array(fc.tuple(names, tie('value')), { maxLength: 3 }).map((entries) => Object.fromEntries(entries)),
  ),
})).value
const type = fc.constantFrom('string', 'number', 'integer', 'boolean', 'object', 'array', 'null')
const count = fc.integer({ min: 0, max: 3 })
const schemas = fc.letrec((tie) => ({
  schema: fc.oneof(
    { maxDepth: 2, withCrossShrink: true },
    fc.constantFrom<unknown>(true, false, {}),
    fc.record({ type: fc.oneof(type, fc.uniqueArray(type, { minLength: 1, maxLength: 2 })) }),
    fc.record({ enum: fc.uniqueArray(texts, { minLength: 1, maxLength: 3 }) }),
    fc.record({ const: json }),
    fc.record(
      {
        minimum: numbers,
        maximum: numbers,
        exclusiveMinimum: numbers,
        multipleOf: fc.constantFrom(1, 2, 0.5),
      },
      { requiredKeys: [] },
    ),
    fc.record({ exclusiveMaximum: numbers }),
    fc.record(
      { minLength: count, maxLength: count, pattern: fc.constantFrom('^a', 'b$') },
      { requiredKeys: [] },
    ),
    fc.record({ minItems: count, maxItems: count, uniqueItems: fc.boolean() }, { requiredKeys: [] }),
    fc.record({ minProperties: count, maxProperties: count }, { requiredKeys: [] }),
    fc.record({ items: tie('schema') }),
    fc.record(
      {
        type: fc.constant('object'),
        properties: fc
          .tuple(names, tie('schema'))
          .map(([name, schema]) => Object.fromEntries([[name, schema]])),
        required: fc.uniqueArray(names, { maxLength: 2 }),
        additionalProperties: tie('schema'),
      },
      { requiredKeys: ['type'] },
    ),
    fc.record({ allOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }) }),
    fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }) }),
    fc.record({ oneOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }) }),
    fc.record({ not: tie('schema') }),
    tie('schema').map((schema) => ({ $defs: { it: schema }, $ref: '#/$defs/it' })),
    fc.record({
      title: fc.constant('Words'),
      'x-words': fc.constant(1),
      format: fc.constantFrom('email', 'date'),
    }),
  ),
})).schema

test('an answer fits by the schema exactly where Ajv says so', async () => {
  const seed = Number(process.env.SEED ?? 41)
  const ajv = new AjvJsonSchemaValidator()
  let fitting = 0
  const property = fc.asyncProperty(schemas, json, async (schema, payload) => {
    // Ajv resolves references against the root alone: a schema of a test refers to its own root.
    // no answer has such a key: servers refuse the whole request for it
    fc.pre(!JSON.stringify(payload)?.includes('"__proto__"'))
    fc.pre(!JSON.stringify(schema).slice(1).includes('$ref') || Object.hasOwn(Object(schema), '$ref'))
    const responseSchema = { allOf: [schema] }
    const root: Record<string, unknown> = Object.hasOwn(Object(schema), '$ref')
      ? Object(schema)
      : responseSchema
    const { person } = await openChat(
      'in-process',
      [asks(question({ responseSchema: root })), [text('Ok.')]],
      { checkResponse },
    )
    await person.sendMessage('go')
    const { status } = await person.respondToInterrupt({ id: 'q1', payload })
    const judge = ajv.getValidator(structuredClone(root) as Parameters<typeof ajv.getValidator>[0])
    const expected = judge(structuredClone(payload)).valid
    if (expected) fitting++
    expect({ schema, payload, status }).toEqual({ schema, payload, status: expected ? 'sent' : 'refused' })
  })
  await fc.assert(property, { seed, numRuns: 400 })
  expect(fitting).toBeGreaterThan(50)
})

test('a schema that refers to itself without end, or to something else, lets nothing through', async () => {
  for (const responseSchema of [
    { $ref: '#' },
    { $ref: 'https://example.org/schema' },
    { $ref: '#/$defs/none' },
    { type: [] },
  ]) {
    const { person } = await openChat('in-process', [asks(question({ responseSchema }))], { checkResponse })
    await person.sendMessage('go')
    expect(await person.respondToInterrupt({ id: 'q1', payload: 1 })).toMatchObject({ status: 'refused' })
  }
})

/** A chat with a run that asks while it is open. */
async function openLive(runs: readonly RunScript[], deliver?: NonNullable<Connection['answer']>) {
  const server = scriptedConnection(runs)
  const { ChatClient: Client } = await import('@countersign/client')
  const taken: unknown[] = []
  const connection: Connection = {
    connect: server.connect,
    ...(deliver && {
      answer(answers, options) {
        taken.push(...answers.resume)
        return deliver(answers, options)
      },
    }),
  }
  const client: ChatClient = new Client({ connection, checkResponse })
  return { client, server, taken }
}

const asked = (client: ChatClient) => until(client, ({ interrupts }) => interrupts.length === 1)
const askLive = (problem?: string) =>
  custom('interrupt-requested', {
    ...question(),
    metadata: {
      countersign: { askedBy: { toolCallId: 'c1', toolName: 'archive' }, ...(problem && { problem }) },
    },
  })
const closeLive = custom('interrupt-closed', { id: 'q1', action: 'accept' })

test('a question while the run is open is answered into that run, and is gone when the server closes it', async () => {
  const { client, server, taken } = await openLive(
    [
      [
        call('c1', 'archive'),
        askLive(),
        hold('asked'),
        closeLive,
        hold('closed'),
        result('c1', 'ok'),
        text('Done.'),
      ],
    ],
    async () => server.release('asked'),
  )
  void client.sendMessage('go')
  await asked(client)
  expect(client.getSnapshot()).toMatchObject({
    isLoading: true,
    interrupts: [{ id: 'q1', metadata: { countersign: { askedBy: { toolName: 'archive' } } } }],
  })
  expect(await client.respondToInterrupt({ id: 'q1', payload: {} })).toMatchObject({ status: 'refused' })
  const answer = client.respondToInterrupt({ id: 'q1', payload: { folder: 'logs' } })
  expect(client.getSnapshot().interrupts).toEqual([])
  await passMacrotasks(3)
  server.release('closed')
  expect(await answer).toEqual({ status: 'sent' })
  expect(taken).toEqual([{ interruptId: 'q1', status: 'resolved', payload: { folder: 'logs' } }])
  expect(server.requests).toHaveLength(1)
  expect(stateOf(client, 'c1')).toBe('complete')
})

test('an answer that the server does not take is refused, and the question is asked again with the reason', async () => {
  const { client, server, taken } = await openLive(
    [[askLive(), hold('first'), askLive('No such folder.'), hold('second'), closeLive, text('Done.')]],
    async () => server.release(taken.length === 1 ? 'first' : 'second'),
  )
  void client.sendMessage('go')
  await asked(client)
  const first = client.respondToInterrupt({ id: 'q1', payload: { folder: 'nowhere' } })
  await asked(client)
  expect(client.getSnapshot().interrupts[0]?.metadata).toMatchObject({
    countersign: { problem: 'No such folder.' },
  })
  const second = client.respondToInterrupt({ id: 'q1', cancel: true })
  expect(await first).toEqual({ status: 'refused', code: 'approval-malformed', reason: 'No such folder.' })
  expect(await second).toEqual({ status: 'sent' })
  expect(taken).toMatchObject([{ status: 'resolved' }, { status: 'cancelled' }])
})

test('a question of an open run ends with the run, whether it is answered, stopped or broken', async () => {
  const runs: RunScript[] = [[askLive(), hold()], [askLive(), end()], [askLive(), cut()], [text('Fine.')]]
  const { client, server } = await openLive(runs, async () => {
    throw new CountersignError('run-error', 'No such run.')
  })
  void client.sendMessage('one')
  await asked(client)
  void client.respondToInterrupt({ id: 'q1', payload: { folder: 'logs' } })
  await passMacrotasks(2)
  client.stop()
  expect(client.getSnapshot().interrupts).toEqual([])
  await client.sendMessage('two')
  expect(client.getSnapshot()).toMatchObject({ interrupts: [], status: 'error' })
  await client.sendMessage('three')
  expect(client.getSnapshot()).toMatchObject({ interrupts: [], status: 'error' })
  expect(await client.sendMessage('four')).toEqual({ status: 'sent' })
  expect(server.requests.map(({ resume }) => resume)).toEqual([undefined, undefined, undefined, undefined])
})

test('a question of a run whose stream broke is still answered, with the next request', async () => {
  const server = scriptedConnection([[askLive(), cut()], [text('Fine.')]])
  const { ChatClient: Client } = await import('@countersign/client')
  const rejoin: Connection['rejoin'] = async function* () {}
  const connection: Connection = { connect: server.connect, rejoin, answer: async () => {} }
  const client = new Client({ connection, checkResponse })
  expect(await client.sendMessage('go')).toMatchObject({ status: 'failed' })
  expect(await client.respondToInterrupt({ id: 'q1', payload: { folder: 'logs' } })).toEqual({
    status: 'sent',
  })
  expect(server.requests[1]?.resume).toMatchObject([{ interruptId: 'q1', status: 'resolved' }])
})

test('an answer to a question of an open run that was lost with its stream goes into it again once it is taken up', async () => {
  const server = scriptedConnection([[askLive(), hold(), cut()]])
  const { ChatClient: Client } = await import('@countersign/client')
  const taken: unknown[] = []
  const connection: Connection = {
    connect: server.connect,
    async answer({ resume }) {
      taken.push(...resume)
      if (taken.length === 1) throw new TypeError('Failed to fetch')
    },
    async *rejoin({ threadId, runId }) {
      while (taken.length < 2) await passMacrotasks(1)
      yield { type: 'CUSTOM', name: 'interrupt-closed', value: { id: 'q1', action: 'accept' } }
      yield { type: 'RUN_FINISHED', threadId, runId }
    },
  }
  const client = new Client({ connection, checkResponse })
  void client.sendMessage('go')
  await asked(client)
  const told = client.respondToInterrupt({ id: 'q1', payload: { folder: 'logs' } })
  await passMacrotasks(2)
  server.release()
  expect(await told).toMatchObject({ status: 'failed' })
  expect(client.getSnapshot().interrupts).toEqual([])
  await client.retry()
  expect(taken).toEqual(
    [1, 2].map(() => ({ interruptId: 'q1', status: 'resolved', payload: { folder: 'logs' } })),
  )
  expect(client.getSnapshot()).toMatchObject({ status: 'ready', interrupts: [] })
  expect(server.requests).toHaveLength(1)
})

test('without a way into the open run its question cannot be answered, and says so', async () => {
  const { client, server } = await openLive([[askLive(), hold(), closeLive, text('Fine.')]])
  const said = client.sendMessage('go')
  await asked(client)
  expect(await client.respondToInterrupt({ id: 'q1', payload: { folder: 'logs' } })).toMatchObject({
    status: 'closed',
  })
  server.release()
  expect(await said).toEqual({ status: 'sent' })
  expect(client.getSnapshot().interrupts).toEqual([])
})

test('a malformed or unknown question changes nothing, and none takes the place of one that a run ended with', async () => {
  const warnings: string[] = []
  const { client, person, server } = await openChat(
    'in-process',
    [
      [
        custom('interrupt-requested', { id: 1 }),
        custom('interrupt-closed', { id: 'q9' }),
        finish({ interrupts: [question()] }),
      ],
      [custom('interrupt-closed', { id: 'q1' }), askLive(), text('Hm.')],
    ],
    { onWarning: (message) => warnings.push(message) },
  )
  await person.sendMessage('go')
  expect(client.getSnapshot().interrupts.map(({ id }) => id)).toEqual(['q1'])
  await person.sendMessage('never mind')
  expect(server.requests[1]?.resume).toEqual([{ interruptId: 'q1', status: 'cancelled' }])
  expect(client.getSnapshot().interrupts).toEqual([])
  expect(warnings).toHaveLength(4)
})
