import { clientTool } from '@countersign/client'
import type { AnyClientTool } from '@countersign/core'
import { call, scriptedConnection, text, until } from '@countersign/testing'
import * as v from 'valibot'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { callOf, failOnUnhandledRejections, openClient } from './open-chat.js'

failOnUnhandledRejections()

// The tools that the application gives, and their results.

const locate = (execute: () => unknown, more: Partial<AnyClientTool> = {}): AnyClientTool => ({
  ...clientTool({ name: 'locate', description: 'Where', input: z.object({}), execute }),
  ...more,
})

describe('F25 the tools of a request', () => {
  const describeTools = async (tools: readonly AnyClientTool[]) => {
    const server = scriptedConnection([[text('hi')], [text('hi')]])
    const onWarning = vi.fn()
    const client = openClient({ connection: server, tools, onWarning })
    await client.sendMessage('one')
    await client.sendMessage('two')
    return { tools: server.requests.map((request) => request.tools), warnings: onWarning.mock.calls.flat() }
  }

  test('F25 a tool that only the page names is sent with the JSON Schema that its own schema gives', async () => {
    const input = z.object({ city: z.string(), country: z.string().optional() })
    const tool = clientTool({ name: 'locate', description: 'Where', input, execute: () => 1 })
    const { tools, warnings } = await describeTools([tool])
    const parameters = {
      type: 'object',
      properties: { city: { type: 'string' }, country: { type: 'string' } },
      required: ['city'],
    }
    expect(tools).toEqual([
      [{ name: 'locate', description: 'Where', parameters }],
      [{ name: 'locate', description: 'Where', parameters }],
    ])
    expect(warnings).toEqual([])
  })

  test('F25 the parameters that a tool gives itself count for more', async () => {
    const parameters = { type: 'object', description: 'own' }
    const { tools } = await describeTools([locate(() => 1, { parameters })])
    expect(tools[0]).toEqual([{ name: 'locate', description: 'Where', parameters }])
  })

  test('F25 a schema that gives no JSON Schema is warned of once, with the way out', async () => {
    const tool = clientTool({
      name: 'locate',
      description: 'Where',
      input: v.object({ city: v.string() }),
      execute: () => 1,
    })
    const { tools, warnings } = await describeTools([tool])
    expect(tools[1]).toEqual([{ name: 'locate', description: 'Where' }])
    expect(warnings).toEqual([
      'The model does not know the parameters of the tool "locate": its schema (valibot) gives no JSON Schema. Give the tool `parameters`.',
    ])
  })
})

describe('F34 client tools', () => {
  const output = z.object({ city: z.string(), country: z.string().default('Portugal') })

  test('F34 the result of a client tool is what its `output` schema makes of it', async () => {
    const server = scriptedConnection([[call('c1', 'locate')], [text('Done.')]])
    const client = openClient({
      connection: server,
      tools: [locate(() => ({ city: 'Lisbon', secret: 1 }), { output })],
    })
    await client.sendMessage('where am I?')
    await until(client, ({ messages, isLoading }) => messages.length > 2 && !isLoading)
    expect(callOf(client, 'c1')).toMatchObject({
      state: 'complete',
      output: { city: 'Lisbon', country: 'Portugal' },
    })
    expect(callOf(client, 'c1').output).not.toHaveProperty('secret')
  })

  test('F34 a result that does not fit is a failure of the tool, and the model is told what is wrong', async () => {
    const server = scriptedConnection([[call('c1', 'locate')], [text('Done.')]])
    const client = openClient({ connection: server, tools: [locate(() => ({ city: 7 }), { output })] })
    await client.sendMessage('where am I?')
    await until(client, ({ messages, isLoading }) => messages.length > 2 && !isLoading)
    expect(callOf(client, 'c1')).toMatchObject({
      state: 'error',
      error: { message: expect.stringMatching(/^The result of "locate" is not valid: city: /) },
    })
  })

  const careless: readonly [string, unknown][] = [
    ['two tools of one name', [locate(() => 1), locate(() => 2)]],
    ['a record of tools', { locate: locate(() => 1) }],
    ['a definition that was placed nowhere', [{ ...locate(() => 1), execute: undefined }]],
    ['a tool without an input schema', [{ name: 'locate', description: 'x', execute: () => 1 }]],
    ['a hole', [undefined]],
  ]
  for (const [what, tools] of careless) {
    test(`F34 ${what} is refused by the constructor and by setOptions, which then changes nothing`, async () => {
      const connection = scriptedConnection([[text('hi')]])
      const refusal = expect.objectContaining({ code: 'invalid-option', data: { option: 'tools' } })
      expect(() => openClient({ connection, tools: tools as never })).toThrow(refusal)
      const client = openClient({ connection, tools: [locate(() => 1)], forwardedProps: 'before' })
      expect(() => client.setOptions({ tools: tools as never, forwardedProps: 'after' })).toThrow(refusal)
      await client.sendMessage('hello')
      expect(connection.requests[0]).toMatchObject({ forwardedProps: 'before', tools: [{ name: 'locate' }] })
    })
  }
})

test.each([
  ['null prototype', Object.create(null)],
  ['a Symbol as its message', Object.assign(new Error('x'), { message: Symbol('m') })],
  ['an object as its message', Object.assign(new Error(), { message: { detail: 1 } })],
  ['no message', Object.assign(new Error(), { message: undefined })],
])('a client tool that throws what is no text (%s) fails, and the chat goes on', async (_, thrown) => {
  const server = scriptedConnection([[call('c1', 'locate')], [text('Well.')], [text('On.')]])
  const client = openClient({ connection: server, tools: [locate(() => Promise.reject(thrown))] })
  await client.sendMessage('go')
  await until(client, ({ messages, isLoading }) => messages.length > 2 && !isLoading)
  expect(callOf(client, 'c1')).toMatchObject({ state: 'error', error: { message: expect.any(String) } })
  expect(await client.sendMessage('on')).toEqual({ status: 'sent' })
})
