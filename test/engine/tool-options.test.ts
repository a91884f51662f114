import { createAgent, scriptedModel, tool } from '@countersign/server'
import { expect, test, vi } from 'vitest'
import * as z from 'zod'

const valid = {
  name: 'wipe',
  description: 'Deletes everything.',
  input: z.object({}),
  execute: () => 'gone',
}

test.each([
  ['needApproval', true],
  ['approvals', { required: true }],
  ['allowEdit', ['a']],
])('a tool with the unknown option %s is refused: it would run without what was meant', (name, value) => {
  const make = () => createAgent({ model: scriptedModel([]), tools: [tool({ ...valid, [name]: value })] })
  expect(make).toThrow(
    expect.objectContaining({ code: 'invalid-tool', data: { tool: 'wipe', option: name } }),
  )
})

test.each([
  ['description', undefined],
  ['input', undefined],
  ['input', 5],
  ['output', 5],
  ['annotations', 'x'],
  ['finalize', 5],
  ['execute', 'x'],
])('a tool whose %s is %o is refused when the agent is made', (name, value) => {
  const broken = { ...valid, [name]: value }
  const make = () => createAgent({ model: scriptedModel([]), tools: [tool(broken as typeof valid)] })
  expect(make).toThrow(expect.objectContaining({ code: 'invalid-tool' }))
})

test.each(['timeout', 'expiresIn'])(
  'm5 a tool whose %s is no usable number is refused when the agent is made',
  (name) => {
    for (const value of [
      Number.NaN,
      Number.POSITIVE_INFINITY,
      -1,
      0,
      '5',
      ...(name === 'timeout' ? [1.5] : []),
    ]) {
      const make = () => createAgent({ model: scriptedModel([]), tools: [tool({ ...valid, [name]: value })] })
      expect(make, String(value)).toThrow(expect.objectContaining({ code: 'invalid-tool' }))
    }
  },
)

test('onError and warn that are asynchronous and reject are told of, and end no process', async () => {
  const told = vi.spyOn(console, 'warn').mockImplementation(() => {})
  const model = scriptedModel([])
  const fails = async () => Promise.reject(new Error('the reporter is down'))
  const agent = createAgent({ model, onError: fails, warn: fails, approvals: { secret: 's'.repeat(32) } })
  const { threadId, runId } = { threadId: 't', runId: 'r' }
  for await (const _ of agent.run({ threadId, runId, messages: [{ id: 'u', role: 'user', content: 'go' }] }));
  await vi.waitFor(() => expect(told.mock.calls.join()).toContain('the reporter is down'))
})
