import { clientTool, isCountersignError, tool, toolDefinition } from '@countersign/core'
import { expect, test } from 'vitest'
import { z } from 'zod'

const options = {
  name: 'remove',
  description: 'Removes a file',
  input: z.object({ path: z.string() }),
  needsApproval: true,
  allowEdits: ['path'],
}

test('a definition is placed on the server or in the client with everything it says', () => {
  const definition = toolDefinition(options)
  const execute = () => 'done'
  expect(definition).toMatchObject(options)
  expect(definition.server(execute)).toEqual({ ...options, location: 'server', execute })
  expect(definition.client(execute)).toEqual({ ...options, location: 'client', execute })
})

test('tool and clientTool are the shorthands', () => {
  const execute = () => 'done'
  expect(tool({ ...options, execute })).toEqual(toolDefinition(options).server(execute))
  expect(clientTool({ ...options, execute })).toEqual(toolDefinition(options).client(execute))
})

test('a name is 1 to 128 characters and does not begin with "client.", which is reserved', () => {
  const execute = () => 'done'
  const makers: readonly ((given: typeof options & { execute: typeof execute }) => unknown)[] = [
    toolDefinition,
    tool,
    clientTool,
  ]
  for (const name of ['', 'x'.repeat(129), 'client.requestApproval', 'client.']) {
    for (const define of makers) {
      let thrown: unknown
      try {
        define({ ...options, name, execute })
      } catch (error) {
        thrown = error
      }
      expect(isCountersignError(thrown) && [thrown.code, thrown.data]).toEqual(['invalid-tool', { name }])
    }
  }
  for (const name of ['x', 'x'.repeat(128), 'client', '__proto__', 'constructor'])
    expect(toolDefinition({ ...options, name }).name).toBe(name)
})
