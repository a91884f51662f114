import { clientTool } from '@countersign/core'
import { createAgent, isApprovalNeeded, scriptedModel, tool, toolDefinition } from '@countersign/server'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import * as z from 'zod'
import { call, collect, counted, input, requests, results, SECRET, say, testAgent, user } from './support.js'

const schema = z.object({ path: z.string() })
const rule = (needsApproval: Parameters<typeof tool<'read', typeof schema, string>>[0]['needsApproval']) =>
  tool({ name: 'read', description: 'Reads', input: schema, needsApproval, execute: ({ path }) => path })

test('S0.14 S0.1 S0.2 S0.3 S0.4 S0.5 S0.12 the truth table of isApprovalNeeded', async () => {
  const passwd = { id: 'c1', arguments: '{"path":"/etc/passwd"}' }
  const home = { id: 'c1', arguments: '{"path":"/home/a"}' }
  const etc = ({ path }: { path: string }) => path.startsWith('/etc/')
  const throwing = () => {
    throw new Error('no')
  }
  const warned: unknown[] = []
  const warn = (_: string, error: unknown) => warned.push(error)
  const table = [
    [undefined, passwd, false],
    [false, passwd, false],
    [true, home, true],
    [etc, passwd, true],
    [etc, home, false],
    [async (args: { path: string }) => etc(args), passwd, true],
    [async (args: { path: string }) => etc(args), home, false],
    [throwing, home, true],
    [async () => throwing(), home, true],
    [true, { id: 'c1', arguments: '{"path":' }, false],
    [true, { id: 'c1', arguments: '{"path":7}' }, false],
  ] as const
  for (const [needsApproval, made, expected] of table) {
    expect(await isApprovalNeeded(rule(needsApproval), made, { warn })).toBe(expected)
  }
  expect(warned.length).toBe(2)
  const forgetful = rule(() => Object(false).missing)
  expect(await isApprovalNeeded(forgetful, home)).toBe(true)
})

test('S0.6 S0.7 S0.8 S0.9 S0.11 the rule gets decoded input, call id, messages and context, once', async () => {
  const seen: unknown[] = []
  const read = tool({
    name: 'read',
    description: 'Reads',
    input: z.object({ n: z.string().transform(Number) }),
    needsApproval: (args, context) => {
      seen.push([args, context.toolCallId, context.messages.length, context.context.limit])
      return false
    },
    execute: ({ n }) => n + 1,
  })
  const { agent } = testAgent(
    [call(['c1', 'read', { n: '7' }]), call(['c2', 'read', { n: '8' }]), say('ok')],
    { tools: [read] },
  )
  const events = await collect(agent, input([user('go')]), { context: { limit: 3 } })
  expect(seen).toEqual([
    [{ n: 7 }, 'c1', 1, 3],
    [{ n: 8 }, 'c2', 3, 3],
  ])
  expect(results(events).map(({ content }) => content)).toEqual([8, 9])
})

test('S0.15 the rule of a client tool is decided on the server', async () => {
  const locate = clientTool({
    name: 'locate',
    description: 'x',
    input: z.object({}),
    needsApproval: true,
    execute: () => 1,
  })
  const { agent } = testAgent([call(['c1', 'locate', {}])], { tools: [locate] })
  expect(requests(await collect(agent, input([user('go')]))).length).toBe(1)
})

test('S0.16 what the model gets of a tool is name, description and parameters', async () => {
  const { agent, model } = testAgent([say('ok')], { tools: [rule(true)] })
  await collect(agent, input([user('go')]))
  expect(model.requests[0]?.tools).toEqual([
    {
      name: 'read',
      description: 'Reads',
      parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
    },
  ])
})

test('policy comes before the tool: allow runs, ask asks, block denies with its reason, a throw asks', async () => {
  const outcome = async (
    policy: () => 'allow' | 'ask' | { decision: 'block'; reason: string } | undefined,
    needsApproval: boolean,
  ) => {
    const send = counted('send', { needsApproval })
    const { agent } = testAgent([call(['c1', 'send', {}]), say('ok')], {
      tools: [send.tool],
      approvals: { policy },
    })
    const events = await collect(agent, input([user('go')]))
    return { runs: send.runs.length, asked: requests(events).length, denied: results(events)[0]?.content }
  }
  expect(await outcome(() => 'allow', true)).toMatchObject({ runs: 1, asked: 0 })
  expect(await outcome(() => 'ask', false)).toMatchObject({ runs: 0, asked: 1 })
  expect(await outcome(() => undefined, false)).toMatchObject({ runs: 1, asked: 0 })
  expect(await outcome(() => ({ decision: 'block', reason: 'never' }), false)).toMatchObject({
    runs: 0,
    asked: 0,
    denied: { type: 'execution-denied', reason: 'never' },
  })
  const failing = () => {
    throw new Error('no rules')
  }
  expect(await outcome(failing, false)).toMatchObject({ runs: 0, asked: 1 })
})

test('redact masks what is shown; what runs is the real call', async () => {
  const send = counted('send', { needsApproval: true, redact: () => ({ key: '***' }) })
  const { agent } = testAgent([call(['c1', 'send', { key: 'secret' }])], { tools: [send.tool] })
  const [asked] = requests(await collect(agent, input([user('go')])))
  expect(asked?.approval.display).toEqual({ key: '***' })
})

test('a schema without JSON Schema of its own needs parameters, and the error names the converter', async () => {
  const make = (parameters?: Record<string, unknown>) =>
    createAgent({
      model: scriptedModel([]),
      approvals: { secret: SECRET },
      warn: () => {},
      tools: [
        toolDefinition({
          name: 'read',
          description: 'x',
          input: v.object({ path: v.string() }),
          parameters,
        }).server(() => 1),
      ],
    })
  expect(() => make()).toThrow(/@valibot\/to-json-schema/)
  expect(() => make({ type: 'object' })).not.toThrow()
})

test('validation is by any Standard Schema, sync or async', async () => {
  const odd: StandardSchemaV1<unknown, { n: number }> = {
    '~standard': {
      version: 1,
      vendor: 'own',
      validate: async (value) =>
        typeof Object(value).n === 'number'
          ? { value: { n: Object(value).n } }
          : { issues: [{ message: 'not a number', path: ['n'] }] },
    },
  }
  const add = tool({ name: 'add', description: 'x', input: odd, parameters: {}, execute: ({ n }) => n + 1 })
  const { agent } = testAgent([call(['c1', 'add', { n: 1 }], ['c2', 'add', { n: 'x' }]), say('ok')], {
    tools: [add],
  })
  const byId = new Map(results(await collect(agent, input([user('go')]))).map((one) => [one.id, one.content]))
  expect(byId.get('c1')).toBe(2)
  expect(byId.get('c2')).toMatchObject({
    type: 'execution-error',
    reason: expect.stringContaining('n: not a number'),
  })
})
