import { checkResponse } from '@countersign/client/response-schema'
import { expect, test } from 'vitest'
import { call, finish, raise, start } from './foreign-server.js'
import { failOnUnhandledRejections } from './open-chat.js'

failOnUnhandledRejections()

// Which interrupts are approval requests, and which responses fit the schema of an interrupt.

const form = { type: 'object', properties: { date: { type: 'string' } }, required: ['date'] }

const approved = { type: 'boolean' }

const decided = (value: boolean) => ({ type: 'object', properties: { approved: { const: value } } })

test.each<object>([
  { type: 'string', enum: ['a', 'b'] },
  { type: 'boolean' },
  { type: 'array', items: { type: 'string' } },
  { oneOf: [form] },
  { oneOf: [decided(true), form] },
  { $ref: '#/$defs/F', $defs: { F: form } },
  { type: 'object', required: ['date'], additionalProperties: { type: 'string' } },
  { type: 'object', additionalProperties: false },
  { type: 'object', properties: { approved: { type: 'string', enum: ['yes', 'no'] } } },
  { type: 'object', properties: { approved: { enum: ['yes', 'no'] } } },
  { type: 'object', properties: { approved: { const: true } } },
  { type: 'object', properties: { approved }, required: ['approved', 'comment'] },
  { type: 'object', properties: { approved }, anyOf: [form] },
])(
  'an interrupt about a call whose schema does not accept a bare yes or no is no approval: %j',
  async (responseSchema) => {
    const { client, pending } = await start((input) => [
      ...call('c1', 1),
      raise(input, { reason: 'choose', responseSchema }),
    ])
    expect(pending()).toEqual([])
    expect(client.getSnapshot().interrupts).toMatchObject([{ id: 'a1', toolCallId: 'c1', responseSchema }])
  },
)

test.each<object>([
  {},
  { responseSchema: {} },
  { responseSchema: { oneOf: [decided(true), decided(false)] } },
  { responseSchema: { type: 'object' } },
  { responseSchema: { type: ['object', 'null'], properties: { approved, note: { enum: [1] } } } },
  { responseSchema: { properties: { approved }, required: ['approved'], additionalProperties: false } },
  {
    responseSchema: { properties: { approved: { type: ['boolean', 'null'] }, editedArgs: { $ref: '#/x' } } },
  },
])('an interrupt about a call that accepts a bare yes or no is an approval: %j', async (schema) => {
  const { client, pending } = await start((input) => [
    ...call('c1', 1),
    raise(input, { reason: 'choose', ...schema }),
  ])
  expect(pending()).toEqual([['a1', 'c1', { n: 1 }]])
  expect(client.getSnapshot().interrupts).toEqual([])
})

test('a response to an interrupt needs a payload, which may be null', async () => {
  const { client, resume } = await start((input) => [finish(input, ['q'])])
  expect(await client.respondToInterrupt({ id: 'q', payload: undefined })).toMatchObject({
    status: 'refused',
    reason: expect.stringContaining('payload'),
  })
  expect(await client.respondToInterrupt({ id: 'q', payload: null })).toEqual({ status: 'sent' })
  expect(resume()[1]).toEqual([['q', null]])
})

test.each([
  ['a', 1],
  ['a👍b', 3],
  ['\ud83d', 1],
  ['👍'.repeat(3), 3],
])('the length of %j in a response schema is %i characters', async (text, length) => {
  const of = (responseSchema: object) =>
    checkResponse(text, { id: 'q', reason: 'x', responseSchema } as never)
  expect(of({ minLength: length, maxLength: length })).toBeUndefined()
  expect(of({ minLength: length + 1 })).toContain('at least')
  expect(of({ maxLength: length - 1 })).toContain('at most')
})
