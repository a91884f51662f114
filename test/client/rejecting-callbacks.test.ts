import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ChatClient, ChatClientOptions } from '@countersign/client'
import { passMacrotasks } from '@countersign/testing'
import { expect, onTestFinished, test, vi } from 'vitest'
import { ask, call, type Event, finish, open, server } from './foreign-server.js'
import { failOnUnhandledRejections } from './open-chat.js'

failOnUnhandledRejections()

// A callback that is async and rejects is treated as one that throws: its error is reported, and nothing stops.

const state: Event[] = [
  { type: 'STATE_SNAPSHOT', snapshot: { n: 1 } },
  { type: 'STATE_DELTA', delta: [{ op: 'replace', path: '/n', value: 2 }] },
]
const one: Event = { type: 'CUSTOM', name: 'one', value: 1 }
const activity: Event = { type: 'ACTIVITY_SNAPSHOT', messageId: 'a', activityType: 'b', content: {} }

/** What calls each callback. */
const scenes: Record<string, (client: ChatClient) => unknown> = {
  statePatch: (client) => client.sendMessage('go'),
  compat: (client) => client.sendMessage('go'),
  onStop: (client) => {
    void client.sendMessage('go')
    client.stop()
  },
  onData: (client) => client.sendMessage('go'),
  checkResponse: async (client) => {
    await client.sendMessage('ask')
    const { interrupts } = client.getSnapshot()
    const response = { id: interrupts[0]?.id ?? '', payload: 1 }
    expect(await client.respondToInterrupt(response)).toMatchObject({ code: 'approval-malformed' })
  },
  onApprovalRequest: (client) => client.sendMessage('go'),
  onToolCall: (client) => client.sendMessage('left'),
  onFinish: (client) => client.sendMessage('go'),
  onError: (client) => client.sendMessage('cut'),
  onEvent: (client) => client.sendMessage('go'),
  onWarning: (client) => client.sendMessage('odd'),
  generateId: (client) => client.sendMessage('go'),
  now: (client) => client.sendMessage('go'),
}

function answer() {
  const { connection } = server((input) => {
    const text = JSON.stringify(input.messages)
    if (text.includes('cut')) return ['cut']
    if (text.includes('left')) return [...call('c0', 1), finish(input)]
    if (text.includes('odd'))
      return [{ type: 'TOOL_CALL_RESULT', messageId: 'x', toolCallId: 'y', content: '' }, finish(input)]
    if (text.includes('ask')) return [finish(input, ['q'])]
    return [...state, one, activity, ...call('c0', 1), ask('c0', 'int-A', 1), finish(input, ['int-A', 'c0'])]
  })
  return { connection }
}

const source = readFileSync(join(import.meta.dirname, '../../packages/client/src/options.ts'), 'utf8')
const callbacks = [...source.matchAll(/^ {2}(\w+): callback,$/gm)].map(([, name = '']) => name)

test('every option that is a function is among the callbacks that are tried', () => {
  expect(Object.keys(scenes).toSorted()).toEqual(callbacks.toSorted())
})

test.each(Object.keys(scenes))('a promise of %s that rejects is reported as what it throws', async (name) => {
  const reported = vi.fn()
  vi.stubGlobal('reportError', reported)
  onTestFinished(() => void vi.unstubAllGlobals())
  const called = vi.fn(() => Promise.reject(new Error(name)))
  const { client } = open({ ...answer(), [name]: called } as ChatClientOptions)
  await scenes[name]?.(client)
  await passMacrotasks(2)
  expect(called).toHaveBeenCalled()
  // The delta is left out, with a warning.
  if (name === 'statePatch') expect(client.getSnapshot().state).toEqual({ n: 1 })
  else expect(reported).toHaveBeenCalledWith(new Error(name))
  expect(client.getSnapshot().isLoading).toBe(false)
})

test('a listener or an observer whose promise rejects stops nothing either', async () => {
  const reported = vi.fn()
  vi.stubGlobal('reportError', reported)
  onTestFinished(() => void vi.unstubAllGlobals())
  const { client } = open(answer())
  const rejects = async () => {
    throw new Error('no')
  }
  client.subscribe(rejects)
  client.observe(rejects)
  await client.sendMessage('go')
  await passMacrotasks(2)
  expect(reported).toHaveBeenCalledWith(new Error('no'))
  expect(client.getSnapshot().pendingApprovals).toHaveLength(1)
})
